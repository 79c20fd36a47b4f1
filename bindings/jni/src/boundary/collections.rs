//! Java's collections, enums and buffers.

use super::{Env, Fault, Outcome, length};
use jni_sys::{jint, jlong, jobject, jvalue};
use std::ffi::CString;

impl Env<'_> {
    /// A `byte[][]`.
    pub(crate) fn arrays<B: AsRef<[u8]>>(self, all: &[B]) -> Outcome<jobject> {
        self.objects("[B", all.len(), |at| self.new_array(all[at].as_ref()))
    }

    /// A `String[]`.
    pub(crate) fn strings<S: AsRef<str>>(self, all: &[S]) -> Outcome<jobject> {
        self.objects("java/lang/String", all.len(), |at| {
            self.string(all[at].as_ref())
        })
    }

    /// A `Long`.
    pub(crate) fn long(self, n: u64) -> Outcome<jobject> {
        self.construct("java/lang/Long", "(J)V", &[jvalue { j: n as jlong }])
    }

    /// A `HashMap` with these entries.
    pub(crate) fn map(self, entries: &[(jobject, jobject)]) -> Outcome<jobject> {
        let map = self.construct("java/util/HashMap", "()V", &[])?;
        let class = self.class("java/util/HashMap")?;
        let put = "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;";
        let put = self.method(class, "put", put)?;
        for (key, value) in entries {
            let before = self.call_object(map, put, &[jvalue { l: *key }, jvalue { l: *value }])?;
            self.forget(before);
        }
        Ok(map)
    }

    /// An `ArrayList` of what `make` makes.
    pub(crate) fn list(
        self,
        count: usize,
        mut make: impl FnMut(usize) -> Outcome<jobject>,
    ) -> Outcome<jobject> {
        let list = self.construct("java/util/ArrayList", "()V", &[])?;
        let class = self.class("java/util/ArrayList")?;
        let add = self.method(class, "add", "(Ljava/lang/Object;)Z")?;
        for at in 0..count {
            let object = make(at)?;
            self.call_bool(list, add, &[jvalue { l: object }])?;
            self.forget(object);
        }
        Ok(list)
    }

    /// A constant of an enum class.
    pub(crate) fn constant(self, class: &str, name: &str) -> Outcome<jobject> {
        let descriptor = CString::new(format!("L{class};")).unwrap_or_default();
        let class = self.class(class)?;
        let name = CString::new(name).unwrap_or_default();
        let field = jni!(
            self,
            GetStaticFieldID,
            class,
            name.as_ptr(),
            descriptor.as_ptr()
        );
        if field.is_null() {
            return Err(Fault::Pending);
        }
        let constant = jni!(self, GetStaticObjectField, class, field);
        self.forget(class);
        Ok(constant)
    }

    /// A `ByteBuffer` over these bytes, which Java code must not keep: a direct one shows them in
    /// place.
    pub(crate) fn buffer(self, bytes: &[u8], is_direct: bool) -> Outcome<jobject> {
        if is_direct {
            let at = bytes.as_ptr().cast_mut().cast();
            let made = jni!(self, NewDirectByteBuffer, at, bytes.len() as jlong);
            self.check()?;
            return Ok(made);
        }
        let array = self.new_array(bytes)?;
        let class = self.class("java/nio/ByteBuffer")?;
        let wrap = self.static_method(class, "wrap", "([B)Ljava/nio/ByteBuffer;")?;
        let arguments = [jvalue { l: array }];
        self.call_static_object(class, wrap, &arguments)
    }

    /// Sets the first elements of an `int[]`.
    pub(crate) fn fill_ints(self, array: jobject, all: &[jint]) -> Outcome<()> {
        jni!(
            self,
            SetIntArrayRegion,
            array,
            0,
            length(all.len())?,
            all.as_ptr()
        );
        self.check()
    }

    /// Sets the first elements of a `long[]`.
    pub(crate) fn fill_longs(self, array: jobject, all: &[jlong]) -> Outcome<()> {
        let count = length(all.len())?;
        jni!(self, SetLongArrayRegion, array, 0, count, all.as_ptr());
        self.check()
    }

    /// Sets an element of an object array.
    pub(crate) fn set(self, array: jobject, at: usize, object: jobject) -> Outcome<()> {
        jni!(self, SetObjectArrayElement, array, length(at)?, object);
        self.check()
    }
}
