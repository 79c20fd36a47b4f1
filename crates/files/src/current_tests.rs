//! Tests of CURRENT.

use super::*;
use esker_env::Env;

#[test]
fn what_is_installed_is_read_and_nothing_is_left_over() {
    let fs = Env::in_memory().fs;
    let dir = Path::new("/db");
    fs.create_dir_all(dir).expect("a directory");
    assert!(read(&*fs, dir).expect_err("absent").is_not_found());
    for n in [5, 1_234_567] {
        install(&*fs, dir, FileNo(n)).expect("installs");
        assert_eq!(read(&*fs, dir).expect("reads"), FileNo(n));
    }
    let bytes = fs.read_all(&dir.join(CURRENT), LIMIT).expect("reads");
    assert_eq!(bytes, b"MANIFEST-1234567\n");
    assert_eq!(fs.read_dir(dir).expect("lists").len(), 1);
}

#[test]
fn malformed_content_is_corruption() {
    let fs = Env::in_memory().fs;
    let dir = Path::new("/db");
    fs.create_dir_all(dir).expect("a directory");
    let contents: [&[u8]; 6] = [
        b"",
        b"\n",
        b"MANIFEST-000005",
        b"000005.sst\n",
        b"\xff\n",
        b"MANIFEST-1\n\n",
    ];
    for content in contents {
        replace(&*fs, dir, "1.dbtmp", CURRENT, content).expect("writes");
        let e = read(&*fs, dir).expect_err("malformed");
        assert!(e.is_corruption() && e.file().is_some(), "{e}");
    }
}
