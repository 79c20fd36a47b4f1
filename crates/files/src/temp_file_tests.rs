//! Tests of files that take their names when they are whole.

use super::*;
use esker_env::Env;
use std::path::Path;

fn names(fs: &dyn FileSystem) -> Vec<String> {
    let mut names: Vec<_> = fs.read_dir(Path::new("/d")).expect("lists");
    names.sort_by(|a, b| a.name.cmp(&b.name));
    names.into_iter().map(|entry| entry.name).collect()
}

fn begin<'a>(fs: &'a dyn FileSystem, content: &[u8]) -> TempFile<'a> {
    let options = WriteOptions::default().exclusively();
    TempFile::begin(fs, "/d/temp".into(), "/d/name".into(), options, content).expect("begins")
}

#[test]
fn a_temp_file_replaces_a_file_whole_or_leaves_no_trace() {
    let fs = Env::in_memory().fs;
    fs.create_dir_all(Path::new("/d")).expect("a directory");
    let mut first = begin(&*fs, b"first");
    assert_eq!(names(&*fs), ["temp"]);
    first.sync().expect("syncs");
    first.take_name().expect("is named");
    drop(begin(&*fs, b"dropped"));
    assert_eq!(names(&*fs), ["name"]);
    let read = || fs.read_all(Path::new("/d/name"), 99).expect("reads");
    assert_eq!(read(), b"first");
    begin(&*fs, b"second").take_name().expect("is named");
    assert_eq!(
        (read(), names(&*fs)),
        (b"second".to_vec(), vec!["name".to_owned()])
    );
}

#[test]
fn a_temp_file_that_cannot_be_begun_or_named_is_removed() {
    let fs = Env::in_memory().fs;
    fs.create_dir_all(Path::new("/d/name/in it"))
        .expect("a directory");
    let temp_file = begin(&*fs, b"no room for it");
    temp_file.take_name().expect_err("a directory has the name");
    assert_eq!(names(&*fs), ["name"]);
    let options = WriteOptions::default();
    let to = Path::new("/none/name").to_owned();
    TempFile::begin(&*fs, "/none/temp".into(), to, options, b"")
        .expect_err("there is no directory");
}

#[test]
fn a_sync_that_another_thread_begins_is_waited_for() {
    let dir = tempfile::tempdir().expect("a directory");
    for fs in [Env::in_memory().fs, Env::posix().fs] {
        let place = dir.path();
        fs.create_dir_all(place).expect("a directory");
        let begin = |content: &[u8]| {
            let (temp, name) = (place.join("temp"), place.join("name"));
            let options = WriteOptions::default().exclusively();
            let mut temp_file =
                TempFile::begin(&*fs, temp, name, options, content).expect("begins");
            temp_file.begin_sync();
            temp_file
        };
        drop(begin(b"dropped"));
        let mut synced = begin(b"synced");
        synced.sync().expect("syncs");
        synced.take_name().expect("is named");
        let read = || fs.read_all(&place.join("name"), 99).expect("reads");
        assert_eq!(read(), b"synced");
        begin(b"named at once").take_name().expect("is named");
        assert_eq!(read(), b"named at once");
        assert!(!fs.exists(&place.join("temp")).expect("looks"));
    }
}
