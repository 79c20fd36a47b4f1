//! RocksDB's Java library on Esker: the native methods of `org.rocksdb` that the stock jars look
//! up.
//!
//! `spec/natives.txt` names every native method of the jars 6.20 to 11.8. What is written here by
//! hand is found by its definitions; accessors of options, refusals of the rest and the check of
//! signatures follow by `cargo xtask jni`. Objects that Java holds are numbers in a table
//! (`boundary::handles`), so that a handle that was closed is an exception and never a crash.
//! Unsafe blocks stand in `boundary` alone.
#![allow(
    non_snake_case,
    reason = "the JVM looks native methods up by these names"
)]
#![allow(
    missing_docs,
    reason = "native methods are documented by the Java methods that call them"
)]

mod access;
mod backup;
mod batch;
mod batch_cursor;
mod boundary;
mod cache;
mod call_options;
mod checkpoint;
mod choices;
mod database;
mod database_calls;
mod events;
mod family;
mod files;
mod filters;
mod flink;
mod generated;
mod hints;
mod inspect;
mod iterator;
mod job_info;
mod logger;
mod merge;
mod objects;
mod open;
mod options;
mod options_file;
mod perf;
mod properties;
mod read;
mod refusal;
mod shared;
mod slice;
mod snapshot;
mod statistics;
mod table;
mod table_file;
mod table_properties;
mod transaction;
mod transaction_db;
mod transaction_reads;
mod tuning;
mod write;

/// Exports native methods. Each has one name or several, gets the environment and its arguments,
/// and answers with an `Outcome`; the receiver or the class is `env.this()`.
macro_rules! natives {
    ($(
        $(#[$doc:meta])*
        fn $($name:ident)|+ ( $env:ident $(, $arg:ident : $ty:ty)* $(,)? ) $(-> $ret:ty)?
        $body:block
    )*) => {$(
        $crate::natives!(@names [$($name)+] $env [$($arg : $ty),*] [$($ret)?] $body);
    )*};
    (@names [$name:ident] $env:ident $args:tt $ret:tt $body:block) => {
        $crate::natives!(@one $name $env $args $ret $body);
    };
    (@names [$name:ident $($more:ident)+] $env:ident $args:tt $ret:tt $body:block) => {
        $crate::natives!(@one $name $env $args $ret $body);
        $($crate::natives!(@alias $more $name $args $ret);)+
    };
    (@one $name:ident $env:ident [$($arg:ident : $ty:ty),*] [$($ret:ty)?] $body:block) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "system" fn $name(
            raw: $crate::boundary::RawEnv,
            this: jni_sys::jobject
            $(, $arg: $ty)*
        ) $(-> $ret)? {
            $crate::boundary::call(raw, this, |$env| {
                let _ = $env;
                $body
            })
        }
    };
    (@alias $name:ident $same:ident [$($arg:ident : $ty:ty),*] [$($ret:ty)?]) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "system" fn $name(
            raw: $crate::boundary::RawEnv,
            this: jni_sys::jobject
            $(, $arg: $ty)*
        ) $(-> $ret)? {
            $same(raw, this $(, $arg)*)
        }
    };
}

/// Exports methods that close a handle of one kind.
macro_rules! disposals {
    ($($kind:ty: $($name:ident)|+;)*) => {$($(
        $crate::natives! {
            fn $name(env, handle: jni_sys::jlong) {
                $crate::shared::dispose::<$kind>(handle)
            }
        }
    )+)*};
}

pub(crate) use {disposals, natives};
