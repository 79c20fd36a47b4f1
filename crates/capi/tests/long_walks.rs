//! Long walks of an iterator: the library shows several entries at once, and nobody notices.

mod common;

use common::fine;
use rocksdb::*;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::ptr::null_mut;

fn at(text: &[u8]) -> *const c_char {
    text.as_ptr().cast()
}

/// Numbers that follow from a seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

fn key(n: u64) -> Vec<u8> {
    format!("key-{n:05}").into_bytes()
}

/// Key and value of the current entry.
fn here(it: *mut rocksdb_iterator_t) -> Option<(Vec<u8>, Vec<u8>)> {
    if rocksdb_iter_valid(it) == 0 {
        return None;
    }
    let copy = |part: rocksdb_slice_t| {
        // SAFETY: a slice of a valid iterator has that many bytes until it moves.
        unsafe { std::slice::from_raw_parts(part.data.cast::<u8>(), part.size) }.to_vec()
    };
    let both = (
        copy(rocksdb_iter_key_slice(it)),
        copy(rocksdb_iter_value_slice(it)),
    );
    let mut len = 0;
    rocksdb_iter_key(it, &mut len);
    assert_eq!(len, both.0.len());
    Some(both)
}

fn walk(db: *mut rocksdb_t, model: &BTreeMap<Vec<u8>, Vec<u8>>, rng: &mut Rng) {
    let all: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let read = rocksdb_readoptions_create();
    let it = rocksdb_create_iterator(db, read);
    for _ in 0..60 {
        let target = key(rng.below(1_000));
        let mut index = match rng.below(4) {
            0 => {
                rocksdb_iter_seek_to_first(it);
                Some(0)
            }
            1 => {
                rocksdb_iter_seek_to_last(it);
                all.len().checked_sub(1)
            }
            2 => {
                rocksdb_iter_seek(it, at(&target), target.len());
                Some(all.partition_point(|e| e.0 < target))
            }
            _ => {
                rocksdb_iter_seek_for_prev(it, at(&target), target.len());
                all.partition_point(|e| e.0 <= target).checked_sub(1)
            }
        };
        for _ in 0..rng.below(4) {
            let forward = rng.below(2) == 0;
            for _ in 0..rng.below(70) {
                let wanted = index.and_then(|i| all.get(i)).cloned();
                assert_eq!(here(it), wanted);
                if wanted.is_none() {
                    break;
                }
                index = if forward {
                    rocksdb_iter_next(it);
                    index.map(|i| i + 1)
                } else {
                    rocksdb_iter_prev(it);
                    index.and_then(|i| i.checked_sub(1))
                };
            }
        }
        assert_eq!(here(it), index.and_then(|i| all.get(i)).cloned());
        fine(|e| rocksdb_iter_get_error(it, e));
        if rng.below(8) == 0 {
            fine(|e| rocksdb_iter_refresh(it, e));
            assert_eq!(here(it), None);
        }
    }
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(read);
}

#[test]
fn walks_in_both_directions_show_what_a_map_has() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = CString::new(dir.path().to_str().expect("UTF-8")).expect("no NUL");
    let options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_disable_auto_compactions(options, 1);
    let db = fine(|e| rocksdb_open(options, path.as_ptr(), e));
    let (write, flush) = (rocksdb_writeoptions_create(), rocksdb_flushoptions_create());
    let mut rng = Rng(7);
    let mut model = BTreeMap::new();
    for round in 0..5 {
        for n in 0..1_000 {
            // Every run has other keys, some of which another one has as well.
            if round > 0 && rng.below(6) > 0 {
                continue;
            }
            let key = key(n);
            if rng.below(9) == 0 {
                fine(|e| rocksdb_delete(db, write, at(&key), key.len(), e));
                model.remove(&key);
                continue;
            }
            let value = format!("{round}-{n}").repeat(1 + rng.below(20) as usize);
            fine(|e| {
                let (k, v) = (at(&key), at(value.as_bytes()));
                rocksdb_put(db, write, k, key.len(), v, value.len(), e);
            });
            model.insert(key, value.into_bytes());
        }
        walk(db, &model, &mut rng);
        if round < 4 {
            fine(|e| rocksdb_flush(db, flush, e));
        }
        walk(db, &model, &mut rng);
        walk(db, &model, &mut rng);
    }
    rocksdb_compact_range(db, null_mut(), 0, null_mut(), 0);
    // A block gets its table of entries when it is sought again.
    for _ in 0..4 {
        walk(db, &model, &mut rng);
    }
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_writeoptions_destroy(write);
    rocksdb_flushoptions_destroy(flush);
}
