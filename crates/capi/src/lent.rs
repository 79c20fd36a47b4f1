//! Borrowed values: text and lists inside an object, valid as long as the object.

use crate::boundary::put;
use std::ffi::c_char;
use std::ptr;

/// Bytes with a NUL after them, for callers that do not ask for the length.
#[derive(Clone, Debug)]
pub(crate) struct Text(Vec<u8>);

impl Text {
    pub(crate) fn new(text: impl AsRef<[u8]>) -> Self {
        let mut bytes = text.as_ref().to_vec();
        bytes.push(0);
        Text(bytes)
    }

    /// Lends the text; its length goes to `size`, unless that is NULL.
    pub(crate) fn lend(&self, size: *mut usize) -> *const c_char {
        put(size, self.0.len() - 1);
        self.0.as_ptr().cast()
    }

    /// The text.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - 1]
    }
}

impl Default for Text {
    fn default() -> Self {
        Text::new([])
    }
}

/// Lends a text of a list; NULL beyond its end.
pub(crate) fn text_at(list: &[Text], pos: usize, size: *mut usize) -> *const c_char {
    match list.get(pos) {
        Some(text) => text.lend(size),
        None => {
            put(size, 0);
            ptr::null()
        }
    }
}

/// Lends a member of a list; NULL beyond its end.
pub(crate) fn member_at<T>(list: &[T], pos: usize) -> *const T {
    list.get(pos).map_or(ptr::null(), ptr::from_ref)
}

/// Exports functions that read a number: `NAME: TYPE = |handle| value`.
macro_rules! read_numbers {
    ($handle:ty; $($name:ident: $value:ty = |$from:ident| $read:expr,)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(handle: *const $handle) -> $value {
            $crate::boundary::attempt(Default::default(), || {
                let $from = $crate::boundary::shared(handle)?;
                Ok($read)
            })
        }
    )*};
}

/// Exports functions that lend a text: `NAME = |handle| &Text`.
macro_rules! lend_texts {
    ($handle:ty; $($name:ident = |$from:ident| $read:expr,)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            handle: *const $handle,
            size: *mut usize,
        ) -> *const std::ffi::c_char {
            $crate::boundary::attempt(std::ptr::null(), || {
                let $from = $crate::boundary::shared(handle)?;
                Ok($crate::lent::Text::lend($read, size))
            })
        }
    )*};
}

/// Exports functions that lend an object: `NAME: TYPE = |handle| &object`.
macro_rules! lend_objects {
    ($handle:ty; $($name:ident: $object:ty = |$from:ident| $read:expr,)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(handle: *const $handle) -> *const $object {
            $crate::boundary::attempt(std::ptr::null(), || {
                let $from = $crate::boundary::shared(handle)?;
                Ok(std::ptr::from_ref($read))
            })
        }
    )*};
}

/// Exports functions that lend a member of a list: `NAME: TYPE = |handle| &list`.
macro_rules! lend_members {
    ($handle:ty; $($name:ident: $object:ty = |$from:ident| $read:expr,)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(handle: *const $handle, pos: usize) -> *const $object {
            $crate::boundary::attempt(std::ptr::null(), || {
                let $from = $crate::boundary::shared(handle)?;
                Ok($crate::lent::member_at($read, pos))
            })
        }
    )*};
}

/// Exports functions that lend a text of a list: `NAME = |handle| &list`.
macro_rules! lend_listed_texts {
    ($handle:ty; $($name:ident = |$from:ident| $read:expr,)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            handle: *const $handle,
            pos: usize,
            size: *mut usize,
        ) -> *const std::ffi::c_char {
            $crate::boundary::attempt(std::ptr::null(), || {
                let $from = $crate::boundary::shared(handle)?;
                Ok($crate::lent::text_at($read, pos, size))
            })
        }
    )*};
}

/// Exports functions that report the error in an object: `NAME = |handle| &Option<Error>`.
macro_rules! report_errors {
    ($handle:ty; $($name:ident = |$from:ident| $read:expr,)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(handle: *const $handle, errptr: *mut *mut std::ffi::c_char) {
            $crate::boundary::call(errptr, (), || {
                let $from = $crate::boundary::shared(handle)?;
                ($read).clone().map_or(Ok(()), Err)
            });
        }
    )*};
}

pub(crate) use {
    lend_listed_texts, lend_members, lend_objects, lend_texts, read_numbers, report_errors,
};
