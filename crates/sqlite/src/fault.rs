//! Crash points and planted bugs, for proofs.
//!
//! With the feature `faults`, `POSTRIDER_FAULT` lists what shall happen, separated by commas:
//! - `crash:<point>[:n]` aborts the process the n-th time it reaches the point (the first by default);
//! - `bug:<name>[:<scope>]` switches a planted bug on, everywhere or for one scope, such as a job's name;
//! - `watch` names every point on stderr when it is reached, so that proofs learn the points from the binary;
//! - `clock:<file>` lets days pass: the file holds the microseconds that the binary's clock is ahead of the machine's, and
//!   behind a space, if anything, those that its date alone is.
//!
//! The writer reaches `<job>.before_commit` and `<job>.after_commit` for every job of every transaction; the
//! second lies after `COMMIT` returned and before any answer. Other rooms add points of their own.
//! Without the feature the functions are empty and the variable is not read.

#[cfg(feature = "faults")]
pub use armed::{
    Disk, FolderWatch, Planted, Synced, bound, bug, bug_in, clock_file, clock_us, date_ahead_us, linger,
    plant, planted_below, point, point_of,
};
#[cfg(not(feature = "faults"))]
pub use unarmed::{bound, bug, bug_in, date_ahead_us, linger, planted_below, point, point_of};

/// The variable that arms points and bugs.
pub const VARIABLE: &str = "POSTRIDER_FAULT";

/// Answers are given before `COMMIT`; the scope is a job's name.
pub const ANSWER_BEFORE_COMMIT: &str = "sqlite.answer_before_commit";

/// After `COMMIT` callers are told that nothing of their request was stored; the scope is a job's name. A transaction that
/// changed nothing is answered as it is.
pub const REFUSED_AND_STORED: &str = "sqlite.refused_and_stored";

/// Files are opened with `synchronous=NORMAL`, which does not sync at commit.
pub const SYNCHRONOUS_NORMAL: &str = "sqlite.synchronous_normal";

/// Past the log's usual bound the writer waits for readers after every commit, for as long as it may wait for a lock.
pub const WAIT_FOR_READERS: &str = "sqlite.wait_for_readers";

/// A group whose transaction SQLite rolled back is answered one by one all the same, each question in a transaction of
/// its own that its savepoint commits.
pub const GROUP_GOES_ON: &str = "sqlite.group_goes_on";

#[cfg(not(feature = "faults"))]
mod unarmed {
    /// Does nothing in a build without `faults`.
    #[inline(always)]
    pub fn point(_name: &str) {}

    /// Does nothing in a build without `faults`.
    #[inline(always)]
    pub fn point_of(_owner: &str, _moment: &str) {}

    /// Does nothing in a build without `faults`.
    #[inline(always)]
    pub fn linger() {}

    /// The product's bound.
    #[inline(always)]
    pub fn bound<T>(product: T, _proof: T) -> T {
        product
    }

    /// The machine's date in a build without `faults`.
    #[inline(always)]
    pub fn date_ahead_us() -> i64 {
        0
    }

    /// No bug is planted in a build without `faults`.
    #[inline(always)]
    pub fn bug(_name: &str) -> bool {
        false
    }

    /// No bug is planted in a build without `faults`.
    #[inline(always)]
    pub fn planted_below(_name: &str, _path: &std::path::Path) -> bool {
        false
    }

    /// No bug is planted in a build without `faults`.
    #[inline(always)]
    pub fn bug_in(_name: &str, _scope: &str) -> bool {
        false
    }
}

#[cfg(feature = "faults")]
mod armed {
    use std::fmt;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

    use super::VARIABLE;

    /// Deviations of one file's disk that only proofs ask for.
    #[derive(Debug, Clone, Default)]
    pub struct Disk {
        /// Name of a registered VFS to open the file with.
        pub vfs: Option<String>,
        /// What a commit waits for.
        pub synced: Synced,
        /// Told when the engine has synced the file's folder, which no VFS sees.
        pub folder: FolderWatch,
    }

    /// What becomes of the sync of the folder when a file is opened.
    #[derive(Clone, Default)]
    pub enum FolderWatch {
        /// It is done.
        #[default]
        Unwatched,
        /// It is done, then this is called.
        Told(Arc<dyn Fn() + Send + Sync>),
        /// It is left out: the control that a power-loss proof must catch.
        LeftOut,
    }

    impl fmt::Debug for FolderWatch {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(match self {
                Self::Unwatched => "Unwatched",
                Self::Told(_) => "Told",
                Self::LeftOut => "LeftOut",
            })
        }
    }

    /// What a commit waits for.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Synced {
        /// The log is synced: the product's only setting.
        #[default]
        Full,
        /// Nothing: the control that a power-loss proof must catch.
        Normal,
    }

    /// Reaches a crash point.
    pub fn point(name: &str) {
        if plan().watch {
            eprintln!("{VARIABLE}: reached {name}");
        }
        if plan().reaches(name) {
            crash(name);
        }
    }

    /// Reaches the crash point `<owner>.<moment>`.
    pub fn point_of(owner: &str, moment: &str) {
        if plan().crashes.is_empty() && !plan().watch {
            return;
        }
        point(&format!("{owner}.{moment}"));
    }

    /// A bound so low that every proof crosses it, in place of the product's.
    pub fn bound<T>(_product: T, proof: T) -> T {
        proof
    }

    /// Whether the planted bug `name` is switched on without a scope.
    pub fn bug(name: &str) -> bool {
        plan().bugs.iter().any(|bug| bug.name == name && bug.scope.is_none())
    }

    /// Whether the planted bug `name` is switched on everywhere or for `scope`.
    pub fn bug_in(name: &str, scope: &str) -> bool {
        let hits = |bug: &Bug| bug.name == name && bug.scope.as_deref().is_none_or(|asked| asked == scope);
        plan().bugs.iter().any(hits)
    }

    /// Bugs planted while the process runs, each with the folder whose files have it.
    static PLANTED: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

    /// A bug that is planted until this is dropped.
    #[derive(Debug)]
    pub struct Planted {
        name: String,
        folder: PathBuf,
    }

    /// Plants the bug `name` in the files below `folder`: a proof's control beside other runs of one process.
    pub fn plant(name: &str, folder: &Path) -> Planted {
        let planted = Planted { name: name.to_owned(), folder: folder.to_owned() };
        list().push((planted.name.clone(), planted.folder.clone()));
        planted
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            list().retain(|(name, folder)| *name != self.name || *folder != self.folder);
        }
    }

    /// Whether the bug `name` is switched on everywhere, or planted in a folder above `path`.
    pub fn planted_below(name: &str, path: &Path) -> bool {
        bug(name) || list().iter().any(|(planted, folder)| planted == name && path.starts_with(folder))
    }

    fn list() -> MutexGuard<'static, Vec<(String, PathBuf)>> {
        PLANTED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the window that a planted bug opens open for a moment, as a slow disk would, so that a kill
    /// can fall into it.
    pub fn linger() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }

    /// The file that says how far ahead of the machine's clock this process lives.
    pub fn clock_file() -> Option<&'static Path> {
        plan().clock.as_deref()
    }

    /// A number of that file: in the first place the time that passes, in the second what the date alone is ahead.
    pub fn clock_us(file: &Path, place: usize) -> Option<i64> {
        std::fs::read_to_string(file).ok()?.split_whitespace().nth(place)?.parse().ok()
    }

    /// How far ahead of the machine's this process's date is.
    pub fn date_ahead_us() -> i64 {
        clock_file().map_or(0, |file| [0, 1].map(|place| clock_us(file, place).unwrap_or(0)).iter().sum())
    }

    #[derive(Debug, Default)]
    pub(super) struct Plan {
        crashes: Vec<Crash>,
        bugs: Vec<Bug>,
        watch: bool,
        clock: Option<PathBuf>,
    }

    #[derive(Debug)]
    struct Crash {
        point: String,
        /// Visits left until the crash.
        left: AtomicU64,
    }

    #[derive(Debug)]
    struct Bug {
        name: String,
        scope: Option<String>,
    }

    impl Plan {
        pub(super) fn parse(text: &str) -> Result<Self, String> {
            let mut plan = Self::default();
            for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                let parts: Vec<&str> = word.split(':').collect();
                match parts[..] {
                    ["crash", point] => plan.crash(point, 1),
                    ["crash", point, n] => match n.parse() {
                        Ok(n @ 1..) => plan.crash(point, n),
                        Ok(0) | Err(_) => return Err(format!("`{word}`: the visit is a number from 1")),
                    },
                    ["bug", name] => plan.bugs.push(Bug { name: name.into(), scope: None }),
                    ["bug", name, scope] => {
                        plan.bugs.push(Bug { name: name.into(), scope: Some(scope.into()) })
                    }
                    ["watch"] => plan.watch = true,
                    ["clock", file] if !file.is_empty() => plan.clock = Some(file.into()),
                    _ => {
                        return Err(format!(
                            "`{word}` is neither crash:<point>[:n] nor bug:<name>[:<scope>] nor watch nor clock:<file>"
                        ));
                    }
                }
            }
            Ok(plan)
        }

        fn crash(&mut self, point: &str, visit: u64) {
            self.crashes.push(Crash { point: point.into(), left: AtomicU64::new(visit) });
        }

        pub(super) fn reaches(&self, name: &str) -> bool {
            let mut now = false;
            for crash in self.crashes.iter().filter(|crash| crash.point == name) {
                now |= crash.left.fetch_sub(1, Ordering::SeqCst) == 1;
            }
            now
        }
    }

    fn plan() -> &'static Plan {
        static PLAN: OnceLock<Plan> = OnceLock::new();
        PLAN.get_or_init(|| {
            let text = std::env::var(VARIABLE).unwrap_or_default();
            // A mistyped plan would make a proof pass without its fault.
            Plan::parse(&text).unwrap_or_else(|problem| {
                eprintln!("{VARIABLE}: {problem}");
                std::process::abort()
            })
        })
    }

    fn crash(name: &str) -> ! {
        eprintln!("{VARIABLE}: crash at {name}");
        std::process::abort()
    }

    #[cfg(test)]
    mod tests {
        use super::Plan;

        #[test]
        fn a_point_crashes_at_its_visit_and_only_then() {
            let plan = Plan::parse("crash:a.before_commit, crash:b:3").unwrap();
            assert_eq!([plan.reaches("a.before_commit"), plan.reaches("a.before_commit")], [true, false]);
            assert_eq!([(); 4].map(|()| plan.reaches("b")), [false, false, true, false]);
            assert!(!plan.reaches("c"));
        }

        #[test]
        fn a_mistyped_plan_is_refused() {
            for text in [
                "crush:a",
                "crash",
                "crash:a:0",
                "crash:a:x",
                "crash:a:1:2",
                "bug",
                "bug:a:b:c",
                "watch:a",
                "clock",
                "clock:",
            ] {
                assert!(Plan::parse(text).is_err(), "{text}");
            }
        }

        #[test]
        fn points_are_watched_only_when_asked() {
            assert!(Plan::parse("crash:a,watch").unwrap().watch);
            assert!(!Plan::parse("crash:a,bug:watch").unwrap().watch);
        }

        #[test]
        fn an_empty_plan_is_a_plan() {
            let plan = Plan::parse("").unwrap();
            assert!(!plan.reaches("a"));
        }
    }
}
