//! Tests of ids.

use super::*;
use esker_env::Env;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
struct Counter(AtomicU64, u64);

impl Entropy for Counter {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(self.1)
    }
}

#[test]
fn ids_have_their_shape() {
    for step in [0x9e37_79b9_7f4a_7c15, 1, u64::MAX] {
        let entropy = Counter(AtomicU64::new(0), step);
        let db = new_db_id(&entropy);
        let shape: Vec<usize> = db.split('-').map(str::len).collect();
        assert_eq!(shape, [8, 4, 4, 4, 12], "{db}");
        assert!(
            db.as_bytes()[14] == b'4' && b"89ab".contains(&db.as_bytes()[19]),
            "{db}"
        );
        let session = new_session_id(&entropy);
        assert_eq!(session.len(), SESSION_ID_LEN);
        assert!(
            session
                .bytes()
                .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
        );
        assert_ne!(&session[8..], "000000000000");
        assert_ne!(session, new_session_id(&entropy));
    }
}

#[test]
fn identity_is_replaced_whole() {
    let fs = Env::in_memory().fs;
    let dir = Path::new("/db");
    fs.create_dir_all(dir).expect("a directory");
    assert!(read(&*fs, dir).expect_err("absent").is_not_found());
    write(&*fs, dir, "one").expect("writes");
    write(&*fs, dir, "two").expect("writes");
    assert_eq!(read(&*fs, dir).expect("reads"), "two");
    write(&*fs, dir, "two\n").expect("writes");
    assert_eq!(read(&*fs, dir).expect("reads"), "two");
    assert_eq!(fs.read_dir(dir).expect("lists").len(), 1);
}
