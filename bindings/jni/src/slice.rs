//! Slices: bytes of the library's own that Java refers to, which read options take as bounds.

use crate::boundary::{Fault, Outcome, handles};
use crate::{disposals, natives};
use esker_sync::{Arc, ArcSwap};
use jni_sys::{jbyte, jint, jlong, jobject};

/// Bytes of the library's own that Java refers to.
pub(crate) struct Slice(ArcSwap<Vec<u8>>);

impl Slice {
    /// The bytes as they are now.
    pub(crate) fn bytes(&self) -> Arc<Vec<u8>> {
        self.0.load_full()
    }

    fn set(&self, bytes: &[u8]) {
        self.0.store(Arc::new(bytes.to_vec()));
    }
}

/// The bytes of a slice; none for 0.
pub(crate) fn bound(slice: jlong) -> Outcome<Option<Vec<u8>>> {
    Ok(handles::hold_if::<Slice>(slice)?.map(|s| s.bytes().to_vec()))
}

/// A slice for Java; 0 for none.
pub(crate) fn slice_of(bytes: Option<&[u8]>) -> jlong {
    bytes.map_or(0, |b| {
        handles::give(Slice(ArcSwap::from_pointee(b.to_vec())))
    })
}

natives! {
    fn Java_org_rocksdb_AbstractSlice_createNewSliceFromString(env, text: jobject) -> jlong {
        Ok(slice_of(Some(env.text(text)?.as_bytes())))
    }

    fn Java_org_rocksdb_Slice_createNewSlice0(env, data: jobject, offset: jint) -> jlong {
        let bytes = env.array(data)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        Ok(slice_of(Some(&bytes[from..])))
    }

    fn Java_org_rocksdb_Slice_createNewSlice1(env, data: jobject) -> jlong {
        Ok(slice_of(Some(&env.array(data)?)))
    }

    fn Java_org_rocksdb_Slice_data0(env, slice: jlong) -> jobject {
        env.new_array(&handles::hold::<Slice>(slice)?.bytes())
    }

    fn Java_org_rocksdb_Slice_disposeInternalBuf
        | Java_org_rocksdb_DirectSlice_disposeInternalBuf(env, _slice: jlong, _offset: jlong) {
        Ok(())
    }

    fn Java_org_rocksdb_Slice_clear0 | Java_org_rocksdb_DirectSlice_clear0(
        env, slice: jlong, _internal: bool, _offset: jlong
    ) {
        handles::hold::<Slice>(slice)?.set(b"");
        Ok(())
    }

    fn Java_org_rocksdb_Slice_removePrefix0 | Java_org_rocksdb_DirectSlice_removePrefix0(
        env, slice: jlong, n: jint
    ) {
        let n = crate::boundary::count(n)?;
        let slice = handles::hold::<Slice>(slice)?;
        let bytes = slice.bytes();
        slice.set(&bytes[n.min(bytes.len())..]);
        Ok(())
    }

    fn Java_org_rocksdb_DirectSlice_setLength0(env, slice: jlong, n: jint) {
        let n = crate::boundary::count(n)?;
        let slice = handles::hold::<Slice>(slice)?;
        let bytes = slice.bytes();
        slice.set(&bytes[..n.min(bytes.len())]);
        Ok(())
    }

    fn Java_org_rocksdb_DirectSlice_get0(env, slice: jlong, at: jint) -> jbyte {
        let at = crate::boundary::count(at)?;
        let found = handles::hold::<Slice>(slice)?.bytes().get(at).copied();
        found.map(|b| b as jbyte).ok_or_else(|| {
            Fault::Message("Requested index larger than slice size.".to_owned())
        })
    }

    /// A buffer with a copy: the bytes may go before the buffer does.
    fn Java_org_rocksdb_DirectSlice_data0(env, slice: jlong) -> jobject {
        env.direct_copy(&handles::hold::<Slice>(slice)?.bytes())
    }

    fn Java_org_rocksdb_DirectSlice_createNewDirectSlice1(env, data: jobject) -> jlong {
        let bytes = env.direct_all(data)?;
        Ok(slice_of(Some(bytes)))
    }

    fn Java_org_rocksdb_AbstractSlice_size0(env, slice: jlong) -> jint {
        Ok(handles::hold::<Slice>(slice)?.bytes().len() as jint)
    }

    fn Java_org_rocksdb_AbstractSlice_empty0(env, slice: jlong) -> bool {
        Ok(handles::hold::<Slice>(slice)?.bytes().is_empty())
    }

    fn Java_org_rocksdb_AbstractSlice_compare0(env, a: jlong, b: jlong) -> jint {
        let (a, b) = (handles::hold::<Slice>(a)?, handles::hold::<Slice>(b)?);
        Ok(a.bytes().cmp(&b.bytes()) as jint)
    }

    fn Java_org_rocksdb_AbstractSlice_startsWith0(env, slice: jlong, prefix: jlong) -> bool {
        let (slice, prefix) = (handles::hold::<Slice>(slice)?, handles::hold::<Slice>(prefix)?);
        Ok(slice.bytes().starts_with(&prefix.bytes()))
    }

    fn Java_org_rocksdb_AbstractSlice_toString0(env, slice: jlong, hex: bool) -> jobject {
        let slice = handles::hold::<Slice>(slice)?;
        if hex {
            let text: String = slice.bytes().iter().map(|b| format!("{b:02X}")).collect();
            return env.string(&text);
        }
        env.string(&String::from_utf8_lossy(&slice.bytes()))
    }

    fn Java_org_rocksdb_DirectSlice_createNewDirectSlice0(
        env, data: jobject, length: jint
    ) -> jlong {
        Ok(slice_of(Some(env.direct(data, 0, length)?)))
    }
}

disposals! {
    Slice: Java_org_rocksdb_AbstractSlice_disposeInternal
        | Java_org_rocksdb_AbstractSlice_disposeInternalJni;
}
