//! Databases of transactions, optimistic and pessimistic, that play a script.

use std::ptr;

use super::open::Mode;
use super::{LibraryState, at};
use crate::api::c;
use crate::api::{H, T, V};
use crate::call::{Bytes, Record, TxnStep};

/// A database of transactions.
#[derive(Clone, Copy)]
enum Owner {
    Optimistic(H),
    Pessimistic(H),
}

impl LibraryState {
    /// Closes, opens as a database of transactions, plays the script, and opens again.
    pub(super) fn transactions(&mut self, script: &[TxnStep], mode: Mode<'_>) -> String {
        self.mark();
        let names = self.names();
        let before = self.latest();
        self.close();
        let path = self.base.join("db");
        let opened = match self.open_at(&path, &names, mode) {
            Err(text) => {
                let again = self.reopen_with(&names);
                return format!("{text}, again {again}");
            }
            Ok(opened) => opened,
        };
        self.families = opened.families;
        let owner = match mode {
            Mode::Pessimistic => Owner::Pessimistic(opened.db),
            _ => Owner::Optimistic(opened.db),
        };
        self.db = match owner {
            Owner::Optimistic(db) => c!(self, optimistictransactiondb_get_base_db, db),
            Owner::Pessimistic(db) => c!(self, transactiondb_get_base_db, db),
        };
        let mut open: [H; 3] = [ptr::null_mut(); 3];
        let mut said = vec![format!("{before}, {}", self.latest())];
        let steps = script.iter();
        said.extend(steps.map(|step| self.txn_step(owner, &mut open, step)));
        for txn in open.into_iter().filter(|txn| !txn.is_null()) {
            c!(self, transaction_destroy, txn);
        }
        let mark = |text: &[u8]| Bytes::from(text.to_vec());
        let mark = Record::Put(0, mark(b"closing"), mark(b"now"));
        said.push(self.outside(owner, &mark));
        said.push(self.digest());
        said.push(self.latest());
        self.release();
        match owner {
            Owner::Optimistic(db) => {
                c!(self, optimistictransactiondb_close_base_db, self.db);
                c!(self, optimistictransactiondb_close, db);
            }
            Owner::Pessimistic(db) => {
                c!(self, transactiondb_close_base_db, self.db);
                c!(self, transactiondb_close, db);
            }
        }
        self.db = ptr::null_mut();
        said.push(self.reopen_with(&names));
        said.push(self.latest());
        said.join(", ")
    }

    fn begin_txn(&self, owner: Owner, snapshot: bool, old: H) -> H {
        let set = u8::from(snapshot);
        match owner {
            Owner::Optimistic(db) => {
                let options = c!(self, optimistictransaction_options_create);
                c!(
                    self,
                    optimistictransaction_options_set_set_snapshot,
                    options,
                    set
                );
                let txn = c!(
                    self,
                    optimistictransaction_begin,
                    db,
                    self.write,
                    options,
                    old
                );
                c!(self, optimistictransaction_options_destroy, options);
                txn
            }
            Owner::Pessimistic(db) => {
                let options = c!(self, transaction_options_create);
                c!(self, transaction_options_set_set_snapshot, options, set);
                c!(self, transaction_options_set_lock_timeout, options, 0);
                c!(self, transaction_options_set_deadlock_detect, options, set);
                let txn = c!(self, transaction_begin, db, self.write, options, old);
                c!(self, transaction_options_destroy, options);
                txn
            }
        }
    }

    /// A write past all transactions.
    fn outside(&self, owner: Owner, record: &Record) -> String {
        let Owner::Pessimistic(db) = owner else {
            return self.batch(std::slice::from_ref(record));
        };
        let (batch, mut e) = (c!(self, writebatch_create), ptr::null_mut());
        self.add(batch, record);
        c!(self, transactiondb_write, db, self.write, batch, &mut e);
        c!(self, writebatch_destroy, batch);
        self.ended(e)
    }

    /// Reads at the transaction's own snapshot.
    fn get_at_snapshot(&self, txn: H, family: usize, key: &[u8]) -> String {
        let snapshot = c!(self, transaction_get_snapshot, txn);
        if snapshot.is_null() {
            return "no snapshot".into();
        }
        let read = c!(self, readoptions_create);
        c!(self, readoptions_set_snapshot, read, snapshot);
        let (cf, mut size, mut e) = (self.handle(family), 0, ptr::null_mut());
        let (k, size_at) = (at(key), &mut size);
        let value = c!(
            self,
            transaction_get_cf,
            txn,
            read,
            cf,
            k,
            key.len(),
            size_at,
            &mut e
        );
        c!(self, readoptions_destroy, read);
        c!(self, free, snapshot);
        self.value_or_error(value, size, e)
    }

    fn txn_multi_get(&self, txn: H, keys: &[(usize, Bytes)]) -> String {
        let count = keys.len();
        let families: Vec<H> = keys
            .iter()
            .map(|(family, _)| self.handle(*family))
            .collect();
        let pointers: Vec<T> = keys.iter().map(|(_, key)| at(key)).collect();
        let sizes: Vec<usize> = keys.iter().map(|(_, key)| key.len()).collect();
        let mut values: Vec<V> = vec![ptr::null_mut(); count];
        let mut value_sizes = vec![0; count];
        let mut errors: Vec<V> = vec![ptr::null_mut(); count];
        c!(
            self,
            transaction_multi_get_cf,
            txn,
            self.read,
            families.as_ptr(),
            count,
            pointers.as_ptr(),
            sizes.as_ptr(),
            values.as_mut_ptr(),
            value_sizes.as_mut_ptr(),
            errors.as_mut_ptr()
        );
        let said = (0..count).map(|i| self.value_or_error(values[i], value_sizes[i], errors[i]));
        said.collect::<Vec<_>>().join(" ")
    }

    fn txn_step(&self, owner: Owner, open: &mut [H; 3], step: &TxnStep) -> String {
        match step {
            TxnStep::Begin(index, snapshot) => {
                open[*index] = self.begin_txn(owner, *snapshot, open[*index]);
                "begun".into()
            }
            TxnStep::Outside(record) => self.outside(owner, record),
            TxnStep::Write(index, _)
            | TxnStep::Get(index, ..)
            | TxnStep::GetForUpdate(index, ..)
            | TxnStep::GetAtSnapshot(index, ..)
            | TxnStep::MultiGet(index, _)
            | TxnStep::Scan(index, _)
            | TxnStep::Commit(index)
            | TxnStep::Rollback(index)
                if open[*index].is_null() =>
            {
                "-".into()
            }
            TxnStep::Write(index, record) => self.txn_write(open[*index], record),
            TxnStep::Get(index, family, key) => {
                let (txn, cf, mut size, mut e) =
                    (open[*index], self.handle(*family), 0, ptr::null_mut());
                let (k, read) = (at(key), self.read);
                let value = c!(
                    self,
                    transaction_get_cf,
                    txn,
                    read,
                    cf,
                    k,
                    key.len(),
                    &mut size,
                    &mut e
                );
                self.value_or_error(value, size, e)
            }
            TxnStep::GetForUpdate(index, family, key) => {
                let (txn, cf, mut size, mut e) =
                    (open[*index], self.handle(*family), 0, ptr::null_mut());
                let (k, read) = (at(key), self.read);
                let value = c!(
                    self,
                    transaction_get_for_update_cf,
                    txn,
                    read,
                    cf,
                    k,
                    key.len(),
                    &mut size,
                    1,
                    &mut e
                );
                self.value_or_error(value, size, e)
            }
            TxnStep::GetAtSnapshot(index, family, key) => {
                self.get_at_snapshot(open[*index], *family, key)
            }
            TxnStep::MultiGet(index, keys) => self.txn_multi_get(open[*index], keys),
            TxnStep::Scan(index, family) => {
                let (txn, cf) = (open[*index], self.handle(*family));
                let iter = c!(self, transaction_create_iterator_cf, txn, self.read, cf);
                c!(self, iter_seek, iter, at(b"abc"), 3);
                let mut said = Vec::new();
                for _ in 0..6 {
                    said.push(self.position(iter));
                    if c!(self, iter_valid, iter) == 0 {
                        break;
                    }
                    c!(self, iter_next, iter);
                }
                c!(self, iter_destroy, iter);
                said.join(" ")
            }
            TxnStep::Commit(index) => {
                let mut e = ptr::null_mut();
                c!(self, transaction_commit, open[*index], &mut e);
                self.ended(e)
            }
            TxnStep::Rollback(index) => {
                let mut e = ptr::null_mut();
                c!(self, transaction_rollback, open[*index], &mut e);
                self.ended(e)
            }
        }
    }

    fn txn_write(&self, txn: H, record: &Record) -> String {
        let mut e = ptr::null_mut();
        match record {
            Record::Put(family, k, v) => {
                let cf = self.handle(*family);
                c!(
                    self,
                    transaction_put_cf,
                    txn,
                    cf,
                    at(k),
                    k.len(),
                    at(v),
                    v.len(),
                    &mut e
                );
            }
            Record::Merge(family, k, v) => {
                let cf = self.handle(*family);
                c!(
                    self,
                    transaction_merge_cf,
                    txn,
                    cf,
                    at(k),
                    k.len(),
                    at(v),
                    v.len(),
                    &mut e
                );
            }
            Record::Delete(family, k) => {
                let cf = self.handle(*family);
                c!(self, transaction_delete_cf, txn, cf, at(k), k.len(), &mut e);
            }
            Record::SavePoint => c!(self, transaction_set_savepoint, txn),
            Record::RollbackToSavePoint => {
                c!(self, transaction_rollback_to_savepoint, txn, &mut e);
            }
            _ => return "-".into(),
        }
        self.ended(e)
    }
}
