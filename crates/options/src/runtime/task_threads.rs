//! Threads that are started when work comes for them first, and wait for more between tasks.
//!
//! A caller that hands over a task waits until it is done. There are as many threads as there were
//! tasks at once, so no task waits for another one. They end with [`TaskThreads::close`].
//! Thread-safety: any thread.

use esker_env::{Executor, JoinHandle};
use esker_status::{Error, Result};
use esker_sync::{Arc, Condvar, Mutex, Rank};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type Task = Box<dyn FnOnce() + Send>;
type Panic = Box<dyn Any + Send>;

/// Threads of one name.
pub struct TaskThreads {
    executor: Arc<dyn Executor>,
    name: &'static str,
    state: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    idle: Vec<Arc<Worker>>,
    all: Vec<(Arc<Worker>, Box<dyn JoinHandle>)>,
    is_closed: bool,
}

/// One thread, as those see it that hand over tasks.
struct Worker {
    slot: Mutex<Slot>,
    changed: Condvar,
}

#[derive(Default)]
struct Slot {
    task: Option<Task>,
    done: Option<std::result::Result<(), Panic>>,
    is_closing: bool,
}

impl Worker {
    fn new() -> Arc<Self> {
        Arc::new(Worker {
            slot: Mutex::new(Rank::LEAF, Slot::default()),
            changed: Condvar::new(),
        })
    }

    /// The life of the thread.
    fn run(&self) {
        loop {
            let mut slot = self.slot.lock();
            let task = loop {
                if let Some(task) = slot.task.take() {
                    break task;
                }
                if slot.is_closing {
                    return;
                }
                self.changed.wait(&mut slot);
            };
            drop(slot);
            let done = catch_unwind(AssertUnwindSafe(task));
            self.slot.lock().done = Some(done);
            self.changed.notify_all();
        }
    }

    /// Has the thread carry out `task`, and waits until it is done. A panic goes on here.
    fn carry_out(&self, task: Task) -> std::result::Result<(), Panic> {
        let mut slot = self.slot.lock();
        slot.task = Some(task);
        self.changed.notify_all();
        loop {
            if let Some(done) = slot.done.take() {
                return done;
            }
            self.changed.wait(&mut slot);
        }
    }

    fn close(&self) {
        self.slot.lock().is_closing = true;
        self.changed.notify_all();
    }
}

impl TaskThreads {
    /// No thread is started yet.
    pub fn new(executor: Arc<dyn Executor>, name: &'static str) -> Self {
        TaskThreads {
            executor,
            name,
            state: Mutex::new(Rank::LEAF, Threads::default()),
        }
    }

    /// Carries out `task` on one of the threads, and waits until it is done. An error when there is
    /// no thread for it: then it was not begun. A panic of `task` goes on in the caller.
    pub fn run<T: Send + 'static>(&self, task: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let worker = self.idle_worker()?;
        let result = Arc::new(Mutex::new(Rank::LEAF, None));
        let done = worker.carry_out({
            let result = Arc::clone(&result);
            Box::new(move || {
                let value = task();
                *result.lock() = Some(value);
            })
        });
        self.state.lock().idle.push(worker);
        if let Err(panic) = done {
            resume_unwind(panic);
        }
        let value = result.lock().take();
        value.ok_or_else(|| Error::aborted("a task ended without a result"))
    }

    /// A thread that has nothing to do; a new one when all are busy.
    fn idle_worker(&self) -> Result<Arc<Worker>> {
        {
            let mut state = self.state.lock();
            if state.is_closed {
                return Err(Error::shutdown());
            }
            if let Some(worker) = state.idle.pop() {
                return Ok(worker);
            }
        }
        let worker = Worker::new();
        let own = Arc::clone(&worker);
        let started = self
            .executor
            .spawn(self.name, Box::new(move || own.run()))?;
        let mut state = self.state.lock();
        if state.is_closed {
            drop(state);
            worker.close();
            started.join();
            return Err(Error::shutdown());
        }
        state.all.push((Arc::clone(&worker), started));
        Ok(worker)
    }

    /// Ends the threads, and waits until tasks that run are done. Nothing is carried out from now
    /// on.
    pub fn close(&self) {
        let all = {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.idle.clear();
            std::mem::take(&mut state.all)
        };
        for (worker, _) in &all {
            worker.close();
        }
        all.into_iter().for_each(|(_, thread)| thread.join());
    }
}

impl std::fmt::Debug for TaskThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskThreads")
            .field("name", &self.name)
            .field("started", &self.state.lock().all.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_env::Env;
    use esker_status::ErrorKind;
    use std::sync::mpsc::channel;

    fn threads() -> TaskThreads {
        TaskThreads::new(Env::in_memory().executor, "task")
    }

    fn own_id() -> std::thread::ThreadId {
        std::thread::current().id()
    }

    #[test]
    fn a_thread_is_started_once_and_used_again() {
        let threads = threads();
        assert_eq!(threads.state.lock().all.len(), 0);
        let first = threads.run(own_id).expect("runs");
        assert_ne!(first, own_id());
        assert_eq!(threads.run(own_id).expect("runs"), first);
        assert_eq!(threads.state.lock().all.len(), 1);
        threads.close();
        let error = threads.run(own_id).expect_err("is closed");
        assert_eq!(error.kind(), ErrorKind::ShutdownInProgress);
    }

    #[test]
    fn no_task_waits_for_another_one() {
        let threads = threads();
        let (begun, begins) = channel();
        let (go_on, goes_on) = channel();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                threads.run(move || {
                    begun.send(()).expect("is waited for");
                    goes_on.recv().expect("is sent")
                })
            });
            begins.recv().expect("begins");
            threads
                .run(move || go_on.send(7))
                .expect("runs")
                .expect("is received");
            assert_eq!(first.join().expect("ends").expect("runs"), 7);
        });
        assert_eq!(threads.state.lock().all.len(), 2);
        threads.close();
    }

    #[test]
    fn a_panic_goes_on_in_the_caller_and_the_thread_lives_on() {
        let threads = threads();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            threads.run::<()>(|| panic!("as ordered"))
        }));
        assert!(panicked.is_err());
        assert_eq!(threads.run(|| 3).expect("runs"), 3);
        assert_eq!(threads.state.lock().all.len(), 1);
        threads.close();
    }
}
