//! How much of the processor a thread gets. Nothing changes on other systems than Linux.

#![expect(unsafe_code, reason = "no safe crate of ours sets a thread's policy, and it is one call")]

/// A tenth of a processor that others keep busy: several times what copies of the log need.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// This thread runs when nobody else would. To the system a processor that runs it is free: whoever is woken gets it at
/// once, where it would otherwise wait behind somebody on another.
pub(crate) fn take_what_is_left() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: all zeros is a `sched_param`, whose one meaningful field must be zero for this policy.
        let nothing: libc::sched_param = unsafe { std::mem::zeroed() };
        // SAFETY: zero names the calling thread, and the parameter lives through the call.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const nothing) } != 0 {
            let error = std::io::Error::last_os_error();
            tracing::debug!(%error, "a thread that should take what is left has a share");
            take_a_share();
        }
    }
}

/// This thread stands back for others, but never quite.
pub(crate) fn take_a_share() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "a thread that should stand back has the same priority as all");
    }
}
