//! Merge operators that are built in.

use crate::boundary::handles;
use crate::{disposals, natives};
use esker::MergeOperator;
use esker::merge_operator::{StringAppend, UInt64Add};
use esker_sync::Arc;
use jni_sys::{jchar, jlong, jobject};

/// A merge operator that options share.
pub(crate) struct SharedOperator(pub(crate) Arc<dyn MergeOperator>);

natives! {
    fn Java_org_rocksdb_StringAppendOperator_newSharedStringAppendOperator__C(
        env, delimiter: jchar
    ) -> jlong {
        // As RocksDB's library: a byte.
        let operator = StringAppend::new(&[delimiter as u8]);
        Ok(handles::give(SharedOperator(Arc::new(operator))))
    }

    fn Java_org_rocksdb_StringAppendOperator_newSharedStringAppendOperator__Ljava_lang_String_2(
        env, delimiter: jobject
    ) -> jlong {
        let operator = StringAppend::new(env.text(delimiter)?.as_bytes());
        Ok(handles::give(SharedOperator(Arc::new(operator))))
    }

    fn Java_org_rocksdb_UInt64AddOperator_newSharedUInt64AddOperator(env) -> jlong {
        Ok(handles::give(SharedOperator(Arc::new(UInt64Add))))
    }
}

disposals! {
    SharedOperator: Java_org_rocksdb_StringAppendOperator_disposeInternal
        | Java_org_rocksdb_StringAppendOperator_disposeInternalJni
        | Java_org_rocksdb_UInt64AddOperator_disposeInternal
        | Java_org_rocksdb_UInt64AddOperator_disposeInternalJni;
}
