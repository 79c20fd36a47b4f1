//! Native methods that are not supported: each throws `RocksDBException` with the status
//! NotSupported.

use crate::boundary::{self, EmptyResult, Fault, RawEnv};
use esker::Error;
use jni_sys::jobject;

/// Throws, and answers with nothing.
#[cold]
pub(crate) fn refuse<R: EmptyResult>(raw: RawEnv, this: jobject, method: &'static str) -> R {
    boundary::call(raw, this, |_| Err(Fault::Error(not_supported(method))))
}

/// The error that says so.
pub(crate) fn not_supported(what: &str) -> Error {
    Error::not_supported(format!("{what} is not supported by Esker's Java library"))
}

/// Defines a method that is refused.
macro_rules! refused {
    ($name:ident, $method:literal, ($($ty:ty),*) $(-> $ret:ty)?) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "system" fn $name(
            raw: $crate::boundary::RawEnv,
            this: jni_sys::jobject
            $(, _: $ty)*
        ) $(-> $ret)? {
            $crate::refusal::refuse(raw, this, $method)
        }
    };
}

pub(crate) use refused;
