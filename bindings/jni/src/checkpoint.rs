//! Checkpoints.

use crate::boundary::handles;
use crate::database::Database;
use crate::{disposals, natives};
use esker::{CheckpointOptions, Db};
use jni_sys::{jlong, jobject};

/// An object that makes checkpoints of a database.
pub(crate) struct Checkpoint(Db);

impl Checkpoint {
    /// The database.
    pub(crate) fn db(&self) -> &Db {
        &self.0
    }
}

natives! {
    fn Java_org_rocksdb_Checkpoint_newCheckpoint(env, db: jlong) -> jlong {
        let database = handles::hold::<Database>(db)?.open()?.clone();
        Ok(handles::give_owned(Checkpoint(database), db))
    }

    fn Java_org_rocksdb_Checkpoint_createCheckpoint(env, checkpoint: jlong, path: jobject) {
        let path = env.text(path)?;
        let checkpoint = handles::hold::<Checkpoint>(checkpoint)?;
        checkpoint.0.checkpoint_opt(path, &CheckpointOptions::default())?;
        Ok(())
    }
}

disposals! {
    Checkpoint: Java_org_rocksdb_Checkpoint_disposeInternal
        | Java_org_rocksdb_Checkpoint_disposeInternalJni;
}
