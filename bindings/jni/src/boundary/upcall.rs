//! Calls from the engine into Java.
//!
//! A [`Target`] is a Java object that the engine calls, from whatever thread. A thread of the
//! engine's own is attached for the first call and detached when it ends, so that it never keeps
//! the JVM from going down.

use super::{Env, Method, Outcome, RawEnv};
use crate::boundary::Fault;
use jni_sys::{JNI_OK, JNI_VERSION_1_6, JavaVM, jobject};
use std::marker::PhantomData;
use std::ptr;

/// The one JVM of the process.
#[derive(Clone, Copy)]
struct Vm(*mut JavaVM);

// SAFETY: the interface of the JVM itself may be used from any thread.
unsafe impl Send for Vm {}
// SAFETY: as above.
unsafe impl Sync for Vm {}

/// A Java object that the engine calls; it stays alive as long.
pub(crate) struct Target {
    vm: Vm,
    object: jobject,
}

// SAFETY: a global reference may be used from any thread.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

/// A thread that was attached here, until it ends.
struct AttachedThread(Vm);

impl Drop for AttachedThread {
    fn drop(&mut self) {
        // SAFETY: this thread was attached by `with_env`, and runs no Java code now.
        unsafe { ((**self.0.0).v1_4.DetachCurrentThread)(self.0.0) };
    }
}

thread_local! {
    static ATTACHED: std::cell::RefCell<Option<AttachedThread>> = const { std::cell::RefCell::new(None) };
}

impl Vm {
    /// The environment of this thread, which is attached if it must be.
    fn env(self) -> Option<RawEnv> {
        let mut env = ptr::null_mut();
        // SAFETY: `env` is a place for the answer.
        let known = unsafe { ((**self.0).v1_4.GetEnv)(self.0, &raw mut env, JNI_VERSION_1_6) };
        if known == JNI_OK {
            return Some(env.cast());
        }
        // SAFETY: as above; there are no arguments.
        let attached = unsafe {
            ((**self.0).v1_4.AttachCurrentThreadAsDaemon)(self.0, &raw mut env, ptr::null_mut())
        };
        if attached != JNI_OK {
            return None;
        }
        let kept = ATTACHED.try_with(|a| *a.borrow_mut() = Some(AttachedThread(self)));
        if kept.is_err() {
            // The thread is ending: nothing is left that would detach it later.
            drop(AttachedThread(self));
            return None;
        }
        Some(env.cast())
    }
}

impl Target {
    /// A hold on `object`.
    pub(crate) fn new(env: Env<'_>, object: jobject) -> Outcome<Target> {
        let mut vm = ptr::null_mut();
        // SAFETY: the environment is this thread's, and `vm` is a place for the answer.
        unsafe { ((**env.raw).v1_4.GetJavaVM)(env.raw, &raw mut vm) };
        // SAFETY: as above; a reference that is NULL gives NULL.
        let object = unsafe { ((**env.raw).v1_4.NewGlobalRef)(env.raw, object) };
        if object.is_null() {
            return Err(Fault::Message("no memory for a reference".to_owned()));
        }
        Ok(Target { vm: Vm(vm), object })
    }

    /// Runs `body` with the environment of this thread and the object. What `body` leaves pending,
    /// when the thread has no Java caller, is forgotten; local references are given back.
    pub(crate) fn with<R>(&self, body: impl FnOnce(Env<'_>, jobject) -> Outcome<R>) -> Outcome<R> {
        let Some(raw) = self.vm.env() else {
            return Err(Fault::Message("the JVM is going down".to_owned()));
        };
        let env = Env {
            raw,
            this: self.object,
            life: PhantomData,
        };
        // SAFETY: the environment is this thread's.
        unsafe { ((**raw).v1_4.PushLocalFrame)(raw, 16) };
        let outcome = body(env, self.object);
        if outcome.is_err() {
            env.clear();
        }
        // SAFETY: as above; the frame is the one that was pushed.
        unsafe { ((**raw).v1_4.PopLocalFrame)(raw, ptr::null_mut()) };
        outcome
    }

    /// As [`Target::with`], for a thread that Java called: what `body` leaves pending is for the
    /// caller.
    pub(crate) fn calling<R>(
        &self,
        body: impl FnOnce(Env<'_>, jobject) -> Outcome<R>,
    ) -> Outcome<R> {
        let Some(raw) = self.vm.env() else {
            return Err(Fault::Message("the JVM is going down".to_owned()));
        };
        let env = Env {
            raw,
            this: self.object,
            life: PhantomData,
        };
        // SAFETY: the environment is this thread's.
        unsafe { ((**raw).v1_4.PushLocalFrame)(raw, 16) };
        let outcome = body(env, self.object);
        // SAFETY: as above; the frame is the one that was pushed. It may be popped with an
        // exception pending.
        unsafe { ((**raw).v1_4.PopLocalFrame)(raw, ptr::null_mut()) };
        outcome
    }

    /// The object, for arguments.
    pub(crate) fn object(&self) -> jobject {
        self.object
    }

    /// Looks a method of the object's class up.
    pub(crate) fn method(&self, env: Env<'_>, name: &str, descriptor: &str) -> Outcome<Method> {
        env.method(env.class_of(self.object)?, name, descriptor)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(raw) = self.vm.env() {
            // SAFETY: the reference is global and given back once.
            unsafe { ((**raw).v1_4.DeleteGlobalRef)(raw, self.object) };
        }
    }
}
