//! The boundary with the JVM: everything that trusts a pointer.
//!
//! The functions here are safe to call with what the JVM passes to a native method: its environment
//! belongs to this thread until the method returns, and a reference is NULL or good for as long.
//! Handles of native objects are not trusted at all: they are numbers, looked up in [`handles`].
//!
//! No panic gets past [`call`]; a Java exception that is pending is carried out as
//! [`Fault::Pending`].

pub(crate) mod handles;
pub(crate) mod upcall;

use esker_status::{Error, ErrorKind};
use jni_sys::{JNIEnv, jint, jlong, jobject, jsize, jvalue};
use smallvec::SmallVec;
use std::ffi::{CString, c_char};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// The first argument that the JVM passes.
pub(crate) type RawEnv = *mut JNIEnv;

/// Bytes of a key or a value that is short enough for the stack.
pub(crate) type Bytes = SmallVec<[u8; 256]>;

/// Why a native method has no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The engine's error: a `RocksDBException` with its status.
    Error(Error),
    /// A `RocksDBException` with a message and no status.
    Message(String),
    /// Another exception: the class by its internal name, and a message.
    Java(&'static str, String),
    /// An exception that Java code has thrown already.
    Pending,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Error(error)
    }
}

/// The result of a native method.
pub(crate) type Outcome<R> = Result<R, Fault>;

/// A handle that names nothing (any more).
#[cold]
pub(crate) fn stale(handle: jlong, what: &str) -> Fault {
    let name = java_name(what);
    Fault::Java(
        "java/lang/IllegalStateException",
        format!(
            "native handle {handle:#x} is not an open {name}: it was closed, or its database was"
        ),
    )
}

/// The Java class of an object, by the name of its type here.
fn java_name(what: &str) -> &str {
    let inner = what.rsplit("::").next().unwrap_or(what);
    match inner.trim_end_matches('>') {
        "Database" => "RocksDB",
        "Family" => "ColumnFamilyHandle",
        "Walk" => "iterator",
        "Moment" => "Snapshot",
        "Txn" => "Transaction",
        "Plain" => "WriteBatch",
        "Index" => "WriteBatchWithIndex",
        "Updates" => "TransactionLogIterator",
        "ReadState" => "ReadOptions",
        "FlushState" => "FlushOptions",
        "FileOptions" => "EnvOptions",
        "World" => "Env",
        "Stats" => "Statistics",
        "Limiter" => "RateLimiter",
        "Space" => "SstFileManager",
        "Buffers" => "WriteBufferManager",
        "Tables" => "TableFormatConfig",
        "Backups" => "BackupEngine",
        "TransactionLog" => "TransactionLogIterator",
        other => other,
    }
}

/// The answer when there is none.
pub(crate) trait EmptyResult {
    /// 0, false or NULL.
    fn nothing() -> Self;
}

macro_rules! nothing {
    ($($t:ty = $v:expr),*) => {$(impl EmptyResult for $t { fn nothing() -> Self { $v } })*};
}

nothing!(
    () = (),
    bool = false,
    i8 = 0,
    i16 = 0,
    u16 = 0,
    i32 = 0,
    i64 = 0,
    f32 = 0.0,
    f64 = 0.0,
    jobject = ptr::null_mut()
);

/// The JVM as one thread sees it, for the time of one native method or one call into Java.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    raw: RawEnv,
    this: jobject,
    life: PhantomData<&'a ()>,
}

/// Calls a function of the environment.
macro_rules! jni {
    ($env:expr, $name:ident $(, $arg:expr)* $(,)?) => {
        // SAFETY: by the module's contract the environment is this thread's, and references are
        // NULL or live; the callers check those that may not be NULL.
        unsafe { ((**$env.raw).v1_4.$name)($env.raw $(, $arg)*) }
    };
}

mod collections;

/// Runs the body of a native method; after a fault an exception is pending and the answer is
/// [`EmptyResult`].
#[inline(always)]
pub(crate) fn call<R: EmptyResult>(
    raw: RawEnv,
    this: jobject,
    body: impl FnOnce(Env<'_>) -> Outcome<R>,
) -> R {
    let env = Env {
        raw,
        this,
        life: PhantomData,
    };
    match catch_unwind(AssertUnwindSafe(|| body(env))) {
        Ok(Ok(answer)) => answer,
        Ok(Err(fault)) => {
            env.throw(&fault);
            R::nothing()
        }
        Err(panic) => {
            env.throw(&Fault::Error(panicked(&*panic)));
            R::nothing()
        }
    }
}

#[cold]
fn panicked(what: &(dyn std::any::Any + Send)) -> Error {
    let said = what
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| what.downcast_ref::<String>().map(String::as_str));
    let said = said.unwrap_or("no message");
    Error::new(
        ErrorKind::Aborted,
        format!("a defect of the library: {said}"),
    )
}

fn null_argument(what: &str) -> Fault {
    Fault::Java("java/lang/NullPointerException", format!("{what} is null"))
}

/// A count from Java; an error for a negative one.
pub(crate) fn count(n: jint) -> Outcome<usize> {
    usize::try_from(n).map_err(|_| {
        Fault::Java(
            "java/lang/IndexOutOfBoundsException",
            format!("{n} is negative"),
        )
    })
}

fn length(n: usize) -> Outcome<jsize> {
    jsize::try_from(n)
        .map_err(|_| Fault::Message("Requested array size exceeds VM limit".to_owned()))
}

impl<'a> Env<'a> {
    /// The receiver of an instance method, or the class of a static one.
    pub(crate) fn this(self) -> jobject {
        self.this
    }

    /// Returns whether Java code threw, as an error to carry out.
    #[inline]
    pub(crate) fn check(self) -> Outcome<()> {
        if jni!(self, ExceptionCheck) {
            return Err(Fault::Pending);
        }
        Ok(())
    }

    /// Forgets a pending exception; says whether there was one.
    pub(crate) fn clear(self) -> bool {
        let was = jni!(self, ExceptionCheck);
        if was {
            jni!(self, ExceptionClear);
        }
        was
    }

    #[cold]
    fn throw(self, fault: &Fault) {
        if jni!(self, ExceptionCheck) {
            return;
        }
        // A failure to make the exception leaves another one pending.
        let _ = match fault {
            Fault::Pending => Ok(()),
            Fault::Java(class, message) => self.throw_new(class, message),
            Fault::Message(message) => self.throw_new("org/rocksdb/RocksDBException", message),
            Fault::Error(error) => self.throw_status(error),
        };
    }

    fn throw_new(self, class: &str, message: &str) -> Outcome<()> {
        let message = self.string(message)?;
        let thrown = self.construct(class, "(Ljava/lang/String;)V", &[jvalue { l: message }])?;
        jni!(self, Throw, thrown);
        Ok(())
    }

    /// The message is the text of the status, or the name of its code if it has none.
    fn throw_status(self, error: &Error) -> Outcome<()> {
        let status = self.status(Some(error))?;
        let (class, argument) = ("org/rocksdb/RocksDBException", jvalue { l: status });
        let thrown = self.construct(class, "(Lorg/rocksdb/Status;)V", &[argument])?;
        jni!(self, Throw, thrown);
        Ok(())
    }

    /// An `org.rocksdb.Status` with Java's numbers.
    pub(crate) fn status(self, error: Option<&Error>) -> Outcome<jobject> {
        let (code, subcode, state) = match error {
            None => (0, 0, ptr::null_mut()),
            Some(e) => {
                let text = e.to_string();
                let state = text.strip_prefix(e.kind().prefix()).unwrap_or(&text);
                let state = if state.is_empty() {
                    ptr::null_mut()
                } else {
                    self.string(state)?
                };
                (
                    java_code(e.kind()),
                    java_subcode(e.subcode().number()),
                    state,
                )
            }
        };
        let arguments = [
            jvalue { b: code },
            jvalue { b: subcode },
            jvalue { l: state },
        ];
        self.construct("org/rocksdb/Status", "(BBLjava/lang/String;)V", &arguments)
    }

    /// The class with this internal name.
    pub(crate) fn class(self, name: &str) -> Outcome<jobject> {
        let name = CString::new(name).unwrap_or_default();
        let class = jni!(self, FindClass, name.as_ptr());
        if class.is_null() {
            return Err(Fault::Pending);
        }
        Ok(class)
    }

    /// A method of a class.
    pub(crate) fn method(self, class: jobject, name: &str, descriptor: &str) -> Outcome<Method> {
        let name = CString::new(name).unwrap_or_default();
        let descriptor = CString::new(descriptor).unwrap_or_default();
        let id = jni!(self, GetMethodID, class, name.as_ptr(), descriptor.as_ptr());
        if id.is_null() {
            return Err(Fault::Pending);
        }
        Ok(Method(id))
    }

    /// A new object of the class with this internal name.
    pub(crate) fn construct(
        self,
        class: &str,
        descriptor: &str,
        arguments: &[jvalue],
    ) -> Outcome<jobject> {
        let class = self.class(class)?;
        let method = self.method(class, "<init>", descriptor)?;
        let made = jni!(self, NewObjectA, class, method.0, arguments.as_ptr());
        self.check()?;
        self.forget(class);
        Ok(made)
    }

    /// Calls a method that answers with an object.
    pub(crate) fn call_object(self, on: jobject, m: Method, args: &[jvalue]) -> Outcome<jobject> {
        let answer = jni!(self, CallObjectMethodA, on, m.0, args.as_ptr());
        self.check()?;
        Ok(answer)
    }

    /// Calls a method that answers with nothing.
    pub(crate) fn call_void(self, on: jobject, m: Method, args: &[jvalue]) -> Outcome<()> {
        jni!(self, CallVoidMethodA, on, m.0, args.as_ptr());
        self.check()
    }

    /// Calls a method that answers with a `long`.
    pub(crate) fn call_long(self, on: jobject, m: Method, args: &[jvalue]) -> Outcome<jlong> {
        let answer = jni!(self, CallLongMethodA, on, m.0, args.as_ptr());
        self.check()?;
        Ok(answer)
    }

    /// Calls a method that answers with an `int`.
    pub(crate) fn call_int(self, on: jobject, m: Method, args: &[jvalue]) -> Outcome<jint> {
        let answer = jni!(self, CallIntMethodA, on, m.0, args.as_ptr());
        self.check()?;
        Ok(answer)
    }

    /// Calls a method that answers with a `short`.
    pub(crate) fn call_short(self, on: jobject, m: Method, args: &[jvalue]) -> Outcome<i16> {
        let answer = jni!(self, CallShortMethodA, on, m.0, args.as_ptr());
        self.check()?;
        Ok(answer)
    }

    /// Calls a method that answers with a `boolean`.
    pub(crate) fn call_bool(self, on: jobject, m: Method, args: &[jvalue]) -> Outcome<bool> {
        let answer = jni!(self, CallBooleanMethodA, on, m.0, args.as_ptr());
        self.check()?;
        Ok(answer)
    }

    /// A `String`; text that is not Unicode shows replacement characters.
    pub(crate) fn string(self, text: &str) -> Outcome<jobject> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let made = jni!(self, NewString, units.as_ptr(), length(units.len())?);
        self.check()?;
        Ok(made)
    }

    /// The text of a `String`; an exception for null.
    pub(crate) fn text(self, string: jobject) -> Outcome<String> {
        if string.is_null() {
            return Err(null_argument("a string"));
        }
        let units = jni!(self, GetStringLength, string);
        let mut text = vec![0u16; count(units)?];
        jni!(self, GetStringRegion, string, 0, units, text.as_mut_ptr());
        self.check()?;
        Ok(String::from_utf16_lossy(&text))
    }

    /// How many elements an array has; an exception for null.
    #[inline]
    pub(crate) fn array_length(self, array: jobject) -> Outcome<usize> {
        if array.is_null() {
            return Err(null_argument("an array"));
        }
        count(jni!(self, GetArrayLength, array))
    }

    /// All bytes of a `byte[]`.
    pub(crate) fn array(self, array: jobject) -> Outcome<Bytes> {
        let len = self.array_length(array)?;
        self.region(array, 0, length(len)?)
    }

    /// `len` bytes of a `byte[]` from `offset` on; Java's exception where there are fewer.
    #[inline]
    pub(crate) fn region(self, array: jobject, offset: jint, len: jint) -> Outcome<Bytes> {
        if array.is_null() {
            return Err(null_argument("an array"));
        }
        let size = count(len)?;
        // Java's own check of the region comes with the copy: no room is made before for what
        // cannot be there.
        if size > 4096 && size > self.array_length(array)? {
            return Err(Fault::Java(
                "java/lang/ArrayIndexOutOfBoundsException",
                format!("the array has no {len} bytes"),
            ));
        }
        let mut bytes = Bytes::with_capacity(size);
        jni!(
            self,
            GetByteArrayRegion,
            array,
            offset,
            len,
            bytes.as_mut_ptr().cast()
        );
        self.check()?;
        // SAFETY: no exception: the region was inside the array, and all of its bytes were written.
        unsafe { bytes.set_len(size) }
        Ok(bytes)
    }

    /// A `byte[]` with these bytes.
    #[inline]
    pub(crate) fn new_array(self, bytes: &[u8]) -> Outcome<jobject> {
        let len = length(bytes.len())?;
        let array = jni!(self, NewByteArray, len);
        if array.is_null() {
            return Err(Fault::Pending);
        }
        jni!(
            self,
            SetByteArrayRegion,
            array,
            0,
            len,
            bytes.as_ptr().cast()
        );
        self.check()?;
        Ok(array)
    }

    /// Copies what fits of `bytes` into a `byte[]` from `offset` on, `room` bytes at most, and says
    /// how many there are.
    #[inline]
    pub(crate) fn fill_array(
        self,
        array: jobject,
        offset: jint,
        room: jint,
        bytes: &[u8],
    ) -> Outcome<jint> {
        let len = length(bytes.len())?;
        if array.is_null() {
            return Err(null_argument("an array"));
        }
        let fits = len.min(room.max(0));
        jni!(
            self,
            SetByteArrayRegion,
            array,
            offset,
            fits,
            bytes.as_ptr().cast()
        );
        self.check()?;
        Ok(len)
    }

    /// `len` bytes of a direct buffer from `offset` on.
    ///
    /// They are the application's memory: it must not change or free them during the call.
    pub(crate) fn direct(self, buffer: jobject, offset: jint, len: jint) -> Outcome<&'a [u8]> {
        let (at, size) = self.direct_at(buffer, offset, len)?;
        // SAFETY: the region is inside the buffer, which lives while the method's reference does.
        Ok(unsafe { std::slice::from_raw_parts(at.cast(), size) })
    }

    /// All bytes of a direct buffer, as [`Env::direct`].
    pub(crate) fn direct_all(self, buffer: jobject) -> Outcome<&'a [u8]> {
        if buffer.is_null() {
            return Err(null_argument("a buffer"));
        }
        let capacity = jni!(self, GetDirectBufferCapacity, buffer);
        self.direct(
            buffer,
            0,
            jint::try_from(capacity).unwrap_or(jint::MAX).max(0),
        )
    }

    /// A local reference to the same object, for what gives references back.
    pub(crate) fn local(self, object: jobject) -> jobject {
        jni!(self, NewLocalRef, object)
    }

    /// A direct buffer of Java's own with a copy of these bytes.
    pub(crate) fn direct_copy(self, bytes: &[u8]) -> Outcome<jobject> {
        let class = self.class("java/nio/ByteBuffer")?;
        let make = self.static_method(class, "allocateDirect", "(I)Ljava/nio/ByteBuffer;")?;
        let arguments = [jvalue {
            i: length(bytes.len())?,
        }];
        let made = self.call_static_object(class, make, &arguments)?;
        self.fill_direct(made, 0, length(bytes.len())?, bytes)?;
        Ok(made)
    }

    fn direct_at(self, buffer: jobject, offset: jint, len: jint) -> Outcome<(*mut c_char, usize)> {
        if buffer.is_null() {
            return Err(null_argument("a buffer"));
        }
        let at = jni!(self, GetDirectBufferAddress, buffer).cast::<c_char>();
        let capacity = jni!(self, GetDirectBufferCapacity, buffer);
        let (from, size) = (count(offset)?, count(len)?);
        if at.is_null() {
            return Err(Fault::Message(
                "Invalid key argument (argument is not a valid direct ByteBuffer)".to_owned(),
            ));
        }
        let end = jlong::from(offset) + jlong::from(len);
        if capacity < end {
            return Err(Fault::Message(
                "Invalid key argument. Capacity is less than requested region (offset + length)."
                    .to_owned(),
            ));
        }
        // SAFETY: the offset is inside the buffer.
        Ok((unsafe { at.add(from) }, size))
    }

    /// Copies what fits of `bytes` into a direct buffer from `offset` on, `room` bytes at most;
    /// says how many there are.
    pub(crate) fn fill_direct(
        self,
        buffer: jobject,
        offset: jint,
        room: jint,
        bytes: &[u8],
    ) -> Outcome<jint> {
        let (to, room) = self.direct_at(buffer, offset, room)?;
        let fits = bytes.len().min(room);
        // SAFETY: `room` bytes are there, and a Java buffer does not overlap the engine's memory.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), fits) }
        length(bytes.len())
    }

    /// An element of an object array.
    pub(crate) fn element(self, array: jobject, at: usize) -> Outcome<jobject> {
        let element = jni!(self, GetObjectArrayElement, array, length(at)?);
        self.check()?;
        Ok(element)
    }

    /// Gives a local reference back before the method returns: for loops.
    pub(crate) fn forget(self, object: jobject) {
        jni!(self, DeleteLocalRef, object);
    }

    /// An array of objects.
    pub(crate) fn objects(
        self,
        class: &str,
        count: usize,
        mut make: impl FnMut(usize) -> Outcome<jobject>,
    ) -> Outcome<jobject> {
        let class = self.class(class)?;
        let array = jni!(self, NewObjectArray, length(count)?, class, ptr::null_mut());
        self.check()?;
        for at in 0..count {
            let object = make(at)?;
            jni!(self, SetObjectArrayElement, array, length(at)?, object);
            self.check()?;
            self.forget(object);
        }
        Ok(array)
    }

    /// Maps the elements of an object array by `each`.
    pub(crate) fn each<T>(
        self,
        array: jobject,
        mut each: impl FnMut(jobject) -> Outcome<T>,
    ) -> Outcome<Vec<T>> {
        let mut all = Vec::new();
        for at in 0..self.array_length(array)? {
            let element = self.element(array, at)?;
            all.push(each(element)?);
            self.forget(element);
        }
        Ok(all)
    }

    /// The elements of a `long[]`.
    pub(crate) fn longs(self, array: jobject) -> Outcome<Vec<jlong>> {
        let len = self.array_length(array)?;
        let mut all = vec![0; len];
        jni!(
            self,
            GetLongArrayRegion,
            array,
            0,
            length(len)?,
            all.as_mut_ptr()
        );
        self.check()?;
        Ok(all)
    }

    /// The elements of an `int[]`.
    pub(crate) fn ints(self, array: jobject) -> Outcome<Vec<jint>> {
        let len = self.array_length(array)?;
        let mut all = vec![0; len];
        jni!(
            self,
            GetIntArrayRegion,
            array,
            0,
            length(len)?,
            all.as_mut_ptr()
        );
        self.check()?;
        Ok(all)
    }

    /// A `long[]`.
    pub(crate) fn new_longs(self, all: &[jlong]) -> Outcome<jobject> {
        let len = length(all.len())?;
        let array = jni!(self, NewLongArray, len);
        self.check()?;
        jni!(self, SetLongArrayRegion, array, 0, len, all.as_ptr());
        self.check()?;
        Ok(array)
    }

    /// An `int[]`.
    pub(crate) fn new_ints(self, all: &[jint]) -> Outcome<jobject> {
        let len = length(all.len())?;
        let array = jni!(self, NewIntArray, len);
        self.check()?;
        jni!(self, SetIntArrayRegion, array, 0, len, all.as_ptr());
        self.check()?;
        Ok(array)
    }

    /// Makes room for local references beyond the sixteen that a method has in any case.
    pub(crate) fn reserve(self, references: usize) -> Outcome<()> {
        if jni!(self, EnsureLocalCapacity, length(references)?) != 0 {
            return Err(Fault::Pending);
        }
        Ok(())
    }

    /// A static method of a class.
    pub(crate) fn static_method(
        self,
        class: jobject,
        name: &str,
        descriptor: &str,
    ) -> Outcome<Method> {
        let name = CString::new(name).unwrap_or_default();
        let descriptor = CString::new(descriptor).unwrap_or_default();
        let id = jni!(
            self,
            GetStaticMethodID,
            class,
            name.as_ptr(),
            descriptor.as_ptr()
        );
        if id.is_null() {
            return Err(Fault::Pending);
        }
        Ok(Method(id))
    }

    /// Calls a static method that answers with an object.
    pub(crate) fn call_static_object(
        self,
        class: jobject,
        m: Method,
        args: &[jvalue],
    ) -> Outcome<jobject> {
        let answer = jni!(self, CallStaticObjectMethodA, class, m.0, args.as_ptr());
        self.check()?;
        Ok(answer)
    }

    /// Calls a static method that answers with an `int`.
    pub(crate) fn call_static_int(
        self,
        class: jobject,
        m: Method,
        args: &[jvalue],
    ) -> Outcome<jint> {
        let answer = jni!(self, CallStaticIntMethodA, class, m.0, args.as_ptr());
        self.check()?;
        Ok(answer)
    }

    /// The class of an object; an exception for null.
    pub(crate) fn class_of(self, object: jobject) -> Outcome<jobject> {
        if object.is_null() {
            return Err(null_argument("an object"));
        }
        Ok(jni!(self, GetObjectClass, object))
    }
}

/// A method that was looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method(jni_sys::jmethodID);

// SAFETY: method ids are good in every thread while their class is loaded; see `upcall::Target`.
unsafe impl Send for Method {}
// SAFETY: as above.
unsafe impl Sync for Method {}

/// Java's number of a status code: `org.rocksdb.Status.Code`.
fn java_code(kind: ErrorKind) -> i8 {
    match kind {
        ErrorKind::CompactionTooLarge => 0x7F,
        ErrorKind::ColumnFamilyDropped => 0xE,
        other => other as u8 as i8,
    }
}

/// Java's number of a subcode: `org.rocksdb.Status.SubCode`, which knows the first eight.
fn java_subcode(subcode: u8) -> i8 {
    match subcode {
        0..=7 => subcode as i8,
        _ => 0x7F,
    }
}
