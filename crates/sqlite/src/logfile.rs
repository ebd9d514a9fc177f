//! The log's file as the writer sees it: what a commit adds leaves in one write, and the file grows in steps.
//!
//! SQLite writes each page of the log in two calls, and every call costs the system as much as the bytes do. A file that
//! grows at every commit makes every sync write its new size, too, which takes half as long again.
//!
//! - Bytes are kept back only between two syncs: SQLite publishes a commit after it has synced the log, so nobody can be
//!   led to bytes that are still here. That holds under `synchronous=FULL` alone; other files are opened without this.
//! - Whatever SQLite asks of the file but to take more bytes finds everything written. A write that fails is told by the
//!   sync it was kept for, which fails the commit.
//! - Beyond the last page a file holds zeros, which end a log for its reader as the end of the file does.

#![expect(unsafe_code, reason = "an SQLite VFS is a table of C functions; there is no safe way to write one")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use rusqlite::ffi;

/// The most that is kept back: more than most commits write.
const KEPT_BYTES_MAX: usize = 256 * 1024;
/// A log that grows does so by this much: some commits' worth, and soon written.
const GROWTH_BYTES: u64 = 256 * 1024;
/// In one call of SQLite's own file, which takes less than 128 KiB.
const CALL_BYTES_MAX: usize = 64 * 1024;

/// Registered beside the VFS it stands before.
const SUFFIX: &CStr = c"+log";

/// The name of a VFS that keeps back what is written to a log, before the one called `base` or before SQLite's own.
/// Nothing where SQLite does not know `base` or refuses another VFS: then the plain one will do.
pub(crate) fn before(base: Option<&str>) -> Option<String> {
    static REGISTERING: Mutex<()> = Mutex::new(());
    let base = base.map(|name| CString::new(name).ok());
    let named = match &base {
        Some(name) => name.as_ref()?.as_ptr(),
        None => ptr::null(),
    };
    // Two at once would register one name twice.
    let _turn = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: a name is NULL, which asks for the default, or a C string for the length of the call. What SQLite finds is
    // valid for the life of the process, and so is what is leaked to be registered.
    unsafe {
        let base = ffi::sqlite3_vfs_find(named);
        if base.is_null() {
            return None;
        }
        let name: Vec<u8> = [CStr::from_ptr((*base).zName).to_bytes(), SUFFIX.to_bytes()].concat();
        let name = CString::new(name).ok()?;
        let text = name.to_str().ok()?.to_owned();
        if !ffi::sqlite3_vfs_find(name.as_ptr()).is_null() {
            return Some(text);
        }
        let mut vfs = Box::new(ptr::read(base));
        vfs.szOsFile += c_int::try_from(size_of::<LogFile>()).ok()?;
        vfs.pNext = ptr::null_mut();
        vfs.zName = name.into_raw();
        vfs.pAppData = base.cast();
        vfs.xOpen = Some(open);
        vfs.xDelete = Some(delete);
        (ffi::sqlite3_vfs_register(Box::into_raw(vfs), 0) == ffi::SQLITE_OK).then_some(text)
    }
}

/// Our part of an open log; the base's own structure follows it in the same allocation, made by SQLite.
#[repr(C)]
struct LogFile {
    base: ffi::sqlite3_file,
    kept: *mut Kept,
}

/// Bytes on their way to the file: one stretch without gaps.
#[derive(Debug, Default)]
struct Kept {
    at: u64,
    bytes: Vec<u8>,
    /// The file's size, once it was asked for. Only the writer changes it.
    size: Option<u64>,
}

impl Kept {
    /// Whether bytes for `at` continue the stretch, and there is room for them.
    fn continues(&self, at: u64, length: usize) -> bool {
        let end = self.at + self.bytes.len() as u64;
        self.bytes.is_empty() || at == end && self.bytes.len() + length <= KEPT_BYTES_MAX
    }

    fn add(&mut self, at: u64, bytes: &[u8]) {
        if self.bytes.is_empty() {
            self.at = at;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds zeros up to the next step where the stretch would make a file of `size` longer.
    fn grow(&mut self, size: u64) {
        let end = self.at + self.bytes.len() as u64;
        if end > size {
            let zeros = end.next_multiple_of(GROWTH_BYTES) - end;
            self.bytes.resize(self.bytes.len() + usize::try_from(zeros).unwrap_or(0), 0);
        }
        self.size = Some(size.max(self.at + self.bytes.len() as u64));
    }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: `vfs` is one made in `before`, whose data is its base, and `file` has room for our part and the base's.
    unsafe {
        let base: *mut ffi::sqlite3_vfs = (*vfs).pAppData.cast();
        let open = (*base).xOpen.expect("every VFS opens");
        if flags & ffi::SQLITE_OPEN_WAL == 0 {
            return open(base, name, file, flags, out_flags);
        }
        (*file).pMethods = ptr::null();
        (*real(file)).pMethods = ptr::null();
        let code = open(base, name, real(file), flags, out_flags);
        if code == ffi::SQLITE_OK {
            let kept = Box::into_raw(Box::<Kept>::default());
            let base = ffi::sqlite3_file { pMethods: &raw const METHODS };
            file.cast::<LogFile>().write(LogFile { base, kept });
        }
        code
    }
}

/// With the base as the VFS it is called with: it may look there for its own.
unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_folder: c_int) -> c_int {
    // SAFETY: as in `open`; SQLite's other functions of this kind ignore the VFS.
    unsafe {
        let base: *mut ffi::sqlite3_vfs = (*vfs).pAppData.cast();
        (*base).xDelete.expect("every VFS deletes")(base, name, sync_folder)
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    length: c_int,
    at: i64,
) -> c_int {
    // SAFETY: SQLite calls methods on files that `open` filled in, one at a time; `from` holds `length` bytes.
    unsafe {
        let kept = &mut *(*file.cast::<LogFile>()).kept;
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), length.unsigned_abs() as usize);
        let at = at.unsigned_abs();
        if !kept.continues(at, bytes.len()) {
            let code = write_out(file);
            if code != ffi::SQLITE_OK {
                return code;
            }
        }
        kept.add(at, bytes);
        ffi::SQLITE_OK
    }
}

/// Writes what is kept back. Afterwards nothing is, whether or not that worked: SQLite gives the commit up.
///
/// # Safety
/// `file` was filled in by `open`, and its real file is open.
unsafe fn write_out(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: by this function's contract.
    unsafe {
        let kept = &mut *(*file.cast::<LogFile>()).kept;
        if kept.bytes.is_empty() {
            return ffi::SQLITE_OK;
        }
        let (file, mut size) = (real(file), 0);
        let methods = &*(*file).pMethods;
        let asked = match kept.size {
            Some(known) => {
                size = known.cast_signed();
                ffi::SQLITE_OK
            }
            None => methods.xFileSize.expect("a file has a size")(file, &raw mut size),
        };
        if asked == ffi::SQLITE_OK {
            kept.grow(size.unsigned_abs());
        }
        let write = methods.xWrite.expect("a file is written to");
        let (mut at, mut code) = (kept.at.cast_signed(), asked);
        for bytes in kept.bytes.chunks(CALL_BYTES_MAX) {
            if code == ffi::SQLITE_OK {
                let length = c_int::try_from(bytes.len()).expect("a call's worth");
                code = write(file, bytes.as_ptr().cast(), length, at);
                at += i64::from(length);
            }
        }
        if code != ffi::SQLITE_OK {
            kept.size = None;
        }
        kept.bytes.clear();
        code
    }
}

/// What is forwarded after everything was written.
macro_rules! after_writing {
    ($($method:ident => $name:ident($($arg:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $arg: $type)*) -> c_int {
            // SAFETY: as in `write`.
            unsafe {
                match write_out(file) {
                    ffi::SQLITE_OK => {
                        let real = real(file);
                        (*(*real).pMethods).$method.expect("a file has it")(real $(, $arg)*)
                    }
                    failed => failed,
                }
            }
        }
    )*};
}

after_writing! {
    xRead => read(into: *mut c_void, length: c_int, at: i64);
    xSync => sync(flags: c_int);
    xFileSize => file_size(size: *mut i64);
    xFileControl => file_control(what: c_int, with: *mut c_void);
    xLock => lock(level: c_int);
    xUnlock => unlock(level: c_int);
    xCheckReservedLock => check_reserved_lock(out: *mut c_int);
    xSectorSize => sector_size();
    xDeviceCharacteristics => device_characteristics();
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: as in `write`.
    unsafe {
        let code = write_out(file);
        if code != ffi::SQLITE_OK {
            return code;
        }
        (*(*file.cast::<LogFile>()).kept).size = None;
        let real = real(file);
        (*(*real).pMethods).xTruncate.expect("a file can be cut")(real, size)
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: as in `write`; after this call SQLite uses the file no more.
    unsafe {
        // Of a commit that was given up at most: every other one has been synced.
        let written = write_out(file);
        drop(Box::from_raw((*file.cast::<LogFile>()).kept));
        let real = real(file);
        let closed = (*(*real).pMethods).xClose.expect("a file can be closed")(real);
        if written == ffi::SQLITE_OK { closed } else { written }
    }
}

/// Version 1: locks and shared memory are the database file's.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// # Safety
/// `file` is the start of an allocation of `szOsFile` bytes.
unsafe fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: by this function's contract the base's file lies behind our part.
    unsafe { file.cast::<u8>().add(size_of::<LogFile>()).cast() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_while_they_continue_one_another_and_there_is_room() {
        let mut kept = Kept::default();
        assert!(kept.continues(7, 1), "anything begins a stretch");
        kept.add(32, &[1; 24]);
        kept.add(56, &[2; 4096]);
        let end = 56 + 4096;
        for (at, length, continues) in [
            (end, 24, true),
            (end + 1, 24, false),
            (32, 24, false),
            (end, KEPT_BYTES_MAX - 24 - 4096, true),
            (end, KEPT_BYTES_MAX - 24 - 4095, false),
        ] {
            assert_eq!(kept.continues(at, length), continues, "{length} bytes at {at}");
        }
        assert_eq!((kept.at, kept.bytes.len()), (32, 24 + 4096));
    }

    #[test]
    fn a_file_that_must_grow_grows_to_the_next_step_in_zeros_and_another_stays_as_long_as_it_is() {
        for (at, length, size, written, size_after) in [
            (0, 4152, 0, GROWTH_BYTES, GROWTH_BYTES),
            (100, 50, 150, 50, 150),
            (100, 50, 149, GROWTH_BYTES - 100, GROWTH_BYTES),
            (GROWTH_BYTES - 10, 20, GROWTH_BYTES, GROWTH_BYTES + 10, 2 * GROWTH_BYTES),
            (GROWTH_BYTES - 10, 10, 0, 10, GROWTH_BYTES),
        ] {
            let mut kept = Kept::default();
            kept.add(at, &vec![7; usize::try_from(length).unwrap()]);
            kept.grow(size);
            assert_eq!((kept.bytes.len() as u64, kept.size), (written, Some(size_after)), "{length} at {at}");
            assert_eq!(kept.bytes.iter().filter(|byte| **byte == 7).count() as u64, length);
        }
    }
}
