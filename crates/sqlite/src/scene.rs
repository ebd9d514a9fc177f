//! Which file a thread is working on while it runs somebody's job.
//!
//! A job turns `rusqlite::Error` into its own error type with `?`, where neither the file nor the engine is
//! in sight. The scene gives that conversion the file's name, and keeps the last storage trouble so
//! that the engine can tell a job's neighbours why their shared transaction went away.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use crate::StorageError;

thread_local! {
    static SCENE: RefCell<Scene> = const { RefCell::new(Scene { file: None, trouble: None }) };
}

struct Scene {
    file: Option<Arc<Path>>,
    trouble: Option<StorageError>,
}

/// Runs `work` with `file` in view and answers with its result and the last trouble met inside.
pub(crate) fn within<R>(file: &Arc<Path>, work: impl FnOnce() -> R) -> (R, Option<StorageError>) {
    SCENE.with_borrow_mut(|scene| *scene = Scene { file: Some(Arc::clone(file)), trouble: None });
    let result = work();
    let trouble = SCENE.with_borrow_mut(|scene| {
        scene.file = None;
        scene.trouble.take()
    });
    (result, trouble)
}

/// The file in view; outside any job there is none to name.
pub(crate) fn file() -> Arc<Path> {
    SCENE.with_borrow(|scene| scene.file.clone()).unwrap_or_else(|| Path::new("sqlite").into())
}

/// Remembers `error` until the running job ends.
pub(crate) fn note(error: &StorageError) {
    SCENE.with_borrow_mut(|scene| {
        if scene.file.is_some() {
            scene.trouble = Some(error.clone());
        }
    });
}
