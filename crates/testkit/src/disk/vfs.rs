//! The shim: an SQLite VFS that lets a [`Watcher`] stand around every act of the system's own VFS.

#![expect(unsafe_code, reason = "an SQLite VFS is a table of C functions; there is no safe way to write one")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi;

/// Something SQLite is about to do to a file.
#[derive(Debug, Clone, Copy)]
pub enum Act<'a> {
    /// Open a file, making it when it is not there.
    Open {
        /// The file.
        file: &'a Path,
    },
    /// Read.
    Read {
        /// The file.
        file: &'a Path,
    },
    /// Write `bytes` at `at`.
    Write {
        /// The file.
        file: &'a Path,
        /// Position of the first byte.
        at: u64,
        /// What to write.
        bytes: &'a [u8],
    },
    /// Cut or extend to `size` bytes.
    Truncate {
        /// The file.
        file: &'a Path,
        /// The size to be.
        size: u64,
    },
    /// Make what was written durable.
    Sync {
        /// The file.
        file: &'a Path,
    },
    /// Remove the file's name.
    Delete {
        /// The file.
        file: &'a Path,
        /// Whether the folder is synced too.
        folder_synced: bool,
    },
    /// Map a region of the log's index (`-shm`) into memory; where the index must grow, its file grows first.
    Map {
        /// The database file that the index belongs to.
        file: &'a Path,
    },
    /// Take a lock. Giving one back cannot fail.
    Lock {
        /// The database file.
        file: &'a Path,
        /// A lock of the log's index, not of the database file.
        of_index: bool,
    },
}

/// How much of an act is performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portion {
    /// All of it.
    Whole,
    /// Of a write, the first so many bytes; any other act is performed whole.
    Bytes(usize),
}

/// Stands around every act on a mounted disk.
pub trait Watcher: Send + Sync + 'static {
    /// Answers with SQLite's code. `perform` does the act on the real disk; not calling it is a fault.
    fn around(&self, act: Act<'_>, perform: &mut dyn FnMut(Portion) -> c_int) -> c_int;
}

struct Shim {
    watcher: Arc<dyn Watcher>,
    real: *mut ffi::sqlite3_vfs,
}

/// Our part of an open file; the system's own structure follows it in the same allocation, made by SQLite.
#[repr(C)]
struct Handle {
    base: ffi::sqlite3_file,
    shim: *const Shim,
    /// NULL for a temporary file, which no crash can leave behind. Owned by SQLite, outlives the file.
    name: *const c_char,
}

/// Registers a VFS that shows its acts to `watcher`, and answers with its name. It stays for the rest of
/// the process: SQLite may hold on to a VFS for as long as it likes.
///
/// # Panics
/// When SQLite has no VFS of its own or refuses ours, which does not happen on a system it supports.
pub fn mount(watcher: Arc<dyn Watcher>) -> String {
    static MOUNTED: AtomicU64 = AtomicU64::new(1);
    let name = format!("watched-{}", MOUNTED.fetch_add(1, Ordering::Relaxed));
    let c_name = CString::new(name.as_str()).expect("the name is plain ASCII");
    // SAFETY: NULL asks for the default VFS; the answer is valid for the life of the process. The
    // registered copy, its name and the shim are leaked, so they are too. Apart from `xOpen` and
    // `xDelete`, replaced here, the unix VFS's functions ignore the VFS they are called with.
    unsafe {
        let real = ffi::sqlite3_vfs_find(ptr::null());
        assert!(!real.is_null(), "SQLite has a default VFS");
        let mut vfs = Box::new(ptr::read(real));
        vfs.szOsFile += c_int::try_from(size_of::<Handle>()).expect("a few words");
        vfs.pNext = ptr::null_mut();
        vfs.zName = c_name.into_raw();
        vfs.pAppData = Box::into_raw(Box::new(Shim { watcher, real })).cast();
        vfs.xOpen = Some(open);
        vfs.xDelete = Some(delete);
        let registered = ffi::sqlite3_vfs_register(Box::into_raw(vfs), 0);
        assert_eq!(registered, ffi::SQLITE_OK, "a VFS with a new name can be registered");
    }
    name
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: `vfs` is the one made in `mount`, and `file` has room for a handle and the real file.
    unsafe {
        let shim: *const Shim = (*vfs).pAppData.cast();
        (*file).pMethods = ptr::null();
        let real_file = real(file);
        (*real_file).pMethods = ptr::null();
        let mut perform = |_| {
            let open = (*(*shim).real).xOpen.expect("every VFS opens");
            open((*shim).real, name, real_file, flags, out_flags)
        };
        let code = match path(name) {
            Some(path) => (*shim).watcher.around(Act::Open { file: path }, &mut perform),
            None => perform(Portion::Whole),
        };
        if code == ffi::SQLITE_OK {
            file.cast::<Handle>().write(Handle {
                base: ffi::sqlite3_file { pMethods: &raw const METHODS },
                shim,
                name,
            });
        }
        code
    }
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    // SAFETY: as in `open`; the name is a C string for the length of the call.
    unsafe {
        let shim: *const Shim = (*vfs).pAppData.cast();
        let mut perform = |_| {
            let delete = (*(*shim).real).xDelete.expect("every VFS deletes");
            delete((*shim).real, name, sync_dir)
        };
        match path(name) {
            Some(file) => {
                (*shim).watcher.around(Act::Delete { file, folder_synced: sync_dir != 0 }, &mut perform)
            }
            None => perform(Portion::Whole),
        }
    }
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, into: *mut c_void, len: c_int, at: i64) -> c_int {
    // SAFETY: SQLite calls methods only on files `open` filled in; see `watched`.
    unsafe {
        watched(
            file,
            |file| Act::Read { file },
            |real, of, _| of.xRead.expect("unix reads")(real, into, len, at),
        )
    }
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, len: c_int, at: i64) -> c_int {
    // SAFETY: as in `read`; `from` holds `len` bytes for the length of the call.
    unsafe {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), len.unsigned_abs() as usize);
        let act = |file| Act::Write { file, at: at.unsigned_abs(), bytes };
        watched(file, act, |real, of, portion| {
            let len = match portion {
                Portion::Whole => len,
                Portion::Bytes(some) => len.min(c_int::try_from(some).unwrap_or(len)),
            };
            of.xWrite.expect("unix writes")(real, from, len, at)
        })
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let act = |file| Act::Truncate { file, size: size.unsigned_abs() };
        watched(file, act, |real, of, _| of.xTruncate.expect("unix truncates")(real, size))
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        watched(file, |file| Act::Sync { file }, |real, of, _| of.xSync.expect("unix syncs")(real, flags))
    }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let act = |file| Act::Lock { file, of_index: false };
        watched(file, act, |real, of, _| of.xLock.expect("unix locks")(real, level))
    }
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: as in `read`; SQLite hands over a place for the answer.
    unsafe {
        // Whatever happens, SQLite looks at the answer's place.
        *out = ptr::null_mut();
        watched(
            file,
            |file| Act::Map { file },
            |real, of, _| of.xShmMap.expect("unix maps")(real, region, size, extend, out),
        )
    }
}

unsafe extern "C" fn shm_lock(file: *mut ffi::sqlite3_file, offset: c_int, n: c_int, flags: c_int) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let take = |real, of: &ffi::sqlite3_io_methods| {
            of.xShmLock.expect("unix locks an index")(real, offset, n, flags)
        };
        if flags & ffi::SQLITE_SHM_LOCK == 0 {
            let real = real(file);
            return take(real, &*(*real).pMethods);
        }
        watched(file, |file| Act::Lock { file, of_index: true }, |real, of, _| take(real, of))
    }
}

/// Forwards the methods nobody needs to watch.
macro_rules! pass {
    ($($method:ident => $name:ident($($arg:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $arg: $type)*) $(-> $answer)? {
            // SAFETY: as in `read`.
            unsafe {
                let real = real(file);
                (*(*real).pMethods).$method.expect("the unix VFS has it")(real $(, $arg)*)
            }
        }
    )*};
}

pass! {
    xClose => close() -> c_int;
    xFileSize => file_size(size: *mut i64) -> c_int;
    xUnlock => unlock(level: c_int) -> c_int;
    xCheckReservedLock => check_reserved_lock(out: *mut c_int) -> c_int;
    xFileControl => file_control(op: c_int, arg: *mut c_void) -> c_int;
    xSectorSize => sector_size() -> c_int;
    xDeviceCharacteristics => device_characteristics() -> c_int;
    xShmBarrier => shm_barrier();
    xShmUnmap => shm_unmap(delete: c_int) -> c_int;
}

/// Version 2: with the shared memory a log needs, without memory mapping, which would bypass the watcher.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
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
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// # Safety
/// `file` was filled in by `open`, and its real file is open.
unsafe fn watched<'a>(
    file: *mut ffi::sqlite3_file,
    act: impl FnOnce(&'a Path) -> Act<'a>,
    perform: impl Fn(*mut ffi::sqlite3_file, &ffi::sqlite3_io_methods, Portion) -> c_int,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe {
        let handle = &*file.cast::<Handle>();
        let real = real(file);
        let methods = &*(*real).pMethods;
        match path(handle.name) {
            Some(path) => {
                let mut perform = |portion| perform(real, methods, portion);
                (*handle.shim).watcher.around(act(path), &mut perform)
            }
            None => perform(real, methods, Portion::Whole),
        }
    }
}

/// # Safety
/// `file` is the start of an allocation of `szOsFile` bytes.
unsafe fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: by this function's contract the real file lies behind the handle.
    unsafe { file.cast::<u8>().add(size_of::<Handle>()).cast() }
}

/// # Safety
/// `name` is NULL or a C string that outlives the answer.
unsafe fn path<'a>(name: *const c_char) -> Option<&'a Path> {
    if name.is_null() {
        return None;
    }
    // SAFETY: by this function's contract.
    let name = unsafe { CStr::from_ptr(name) };
    Some(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())))
}
