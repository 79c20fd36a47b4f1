//! CURRENT and MANIFESTs that are damaged, or whole and wrong.

use crate::common::Rng;
use crate::damage::{
    change, current, cut, file, file_edit, flip, len, manifest, manifest_record, table,
};
use crate::{ABSENT, CORRUPTION, Case, How, REFUSED, Shows, UNSUPPORTED, case, opened, whole};
use esker_format::edit::VersionEdit;
use esker_format::{FamilyId, FileNo, InternalKey, Level, Seq, ValueType};

pub(crate) fn current_cases() -> Vec<Case> {
    use Shows::AtOpen;
    let missing = || whole(|d| std::fs::remove_file(d.join("CURRENT")).expect("there"));
    vec![
        case("CURRENT is missing", "CURRENT", ABSENT, AtOpen, missing()),
        opened(
            case(
                "CURRENT is missing, and a database may be made",
                "CURRENT",
                ABSENT,
                AtOpen,
                missing(),
            ),
            How::CreateIfMissing,
        ),
        case(
            "CURRENT is empty",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b""),
        ),
        case(
            "CURRENT has no line end",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b"MANIFEST-000005"),
        ),
        case(
            "CURRENT names a file that is not there",
            "MANIFEST-099999",
            ABSENT,
            AtOpen,
            current(b"MANIFEST-099999\n"),
        ),
        case(
            "CURRENT names something else",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b"IDENTITY\n"),
        ),
        case(
            "CURRENT leads out of the directory",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b"../MANIFEST-000005\n"),
        ),
        case(
            "CURRENT names a huge number",
            "CURRENT",
            ABSENT,
            AtOpen,
            current(b"MANIFEST-99999999999999999999999\n"),
        ),
        case(
            "CURRENT is binary",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b"\xff\xfe\x00\x01\n"),
        ),
        case(
            "CURRENT is huge",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| {
                std::fs::write(d.join("CURRENT"), vec![b'M'; 1 << 20]).expect("written");
            }),
        ),
        case(
            "CURRENT is a directory",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| {
                std::fs::remove_file(d.join("CURRENT")).expect("there");
                std::fs::create_dir(d.join("CURRENT")).expect("made");
            }),
        ),
        case(
            "IDENTITY is not text",
            "IDENTITY",
            CORRUPTION,
            AtOpen,
            whole(|d| {
                std::fs::write(d.join("IDENTITY"), b"\xff\xff\xff").expect("written");
            }),
        ),
    ]
}

pub(crate) fn manifest_bytes_cases() -> Vec<Case> {
    use Shows::AtOpen;
    let m = "MANIFEST-";
    vec![
        case(
            "the MANIFEST is missing",
            m,
            ABSENT,
            AtOpen,
            whole(|d| std::fs::remove_file(file(d, "MANIFEST-")).expect("there")),
        ),
        case(
            "the MANIFEST is empty",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&file(d, "MANIFEST-"), 0)),
        ),
        case(
            "the MANIFEST is cut in its first header",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&file(d, "MANIFEST-"), 5)),
        ),
        case(
            "the MANIFEST is cut in its first record",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&file(d, "MANIFEST-"), 20)),
        ),
        case(
            "the MANIFEST lost its second half",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let path = file(d, "MANIFEST-");
                cut(&path, len(&path) / 2);
            }),
        ),
        case(
            "a flipped checksum in the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |_| 2),
        ),
        case(
            "a flipped length in the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |_| 4),
        ),
        case(
            "a flipped record type in the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |_| 6),
        ),
        case(
            "a flipped byte in the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |_| 12),
        ),
        case(
            "a flipped byte in the middle of the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |n| n / 2),
        ),
        case(
            "the MANIFEST is random",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let mut rng = Rng::new(3);
                change(&file(d, "MANIFEST-"), |b| {
                    b.iter_mut().for_each(|x| *x = rng.next() as u8)
                });
            }),
        ),
        case(
            "the MANIFEST is zeroed",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| change(&file(d, "MANIFEST-"), |b| b.fill(0))),
        ),
        case(
            "a megabyte of 0xff as MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                std::fs::write(file(d, "MANIFEST-"), vec![0xff; 1 << 20]).expect("written");
            }),
        ),
        case(
            "a table as MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                std::fs::copy(table(d), file(d, "MANIFEST-")).expect("copied");
            }),
        ),
    ]
}

pub(crate) fn manifest_edit_cases() -> Vec<Case> {
    use Shows::AtOpen;
    let m = "MANIFEST-";
    let with = |tag: u32, rest: &[u8]| {
        let mut record = Vec::new();
        esker_format::coding::put_varint32(&mut record, tag);
        record.extend(rest);
        record
    };
    vec![
        case(
            "an edit for a family that does not exist",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId(77));
                edit.log_number = Some(FileNo(3));
                e.push(edit);
            }),
        ),
        case(
            "a family added twice",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId(1));
                edit.family_add = Some("again".to_owned());
                e.push(edit);
            }),
        ),
        case(
            "two families of one name",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId(9));
                edit.family_add = Some("other".to_owned());
                e.push(edit);
            }),
        ),
        case(
            "the default family is dropped",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId::DEFAULT);
                edit.family_drop = true;
                e.push(edit);
            }),
        ),
        case(
            "the comparator is another",
            "comparator",
            REFUSED,
            AtOpen,
            manifest(|e| {
                let edit = e
                    .iter_mut()
                    .find(|e| e.comparator.is_some())
                    .expect("named");
                edit.comparator = Some("someone.ElsesComparator".to_owned());
            }),
        ),
        case(
            "no next file number",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                e.iter_mut().for_each(|e| e.next_file_number = None);
            }),
        ),
        case(
            "the highest possible next file number",
            m,
            CORRUPTION,
            Shows::ForWriters,
            manifest(|e| {
                e.push(VersionEdit {
                    next_file_number: Some(FileNo(FileNo::LIMIT.0 - 1)),
                    ..VersionEdit::default()
                });
            }),
        ),
        case(
            "the highest possible last sequence",
            m,
            CORRUPTION,
            Shows::ForWriters,
            manifest(|e| {
                e.push(VersionEdit {
                    last_sequence: Some(Seq(Seq::MAX.0 - 1)),
                    ..VersionEdit::default()
                });
            }),
        ),
        case(
            "the last sequence goes back",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId::DEFAULT);
                edit.last_sequence = Some(Seq(1));
                e.push(edit);
            }),
        ),
        case(
            "a deleted file that is not there",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId::DEFAULT);
                edit.delete_file(Level(3), FileNo(4000));
                e.push(edit);
            }),
        ),
        case(
            "a table added twice",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let edit = e
                    .iter()
                    .rev()
                    .find(|e| !e.new_files.is_empty())
                    .expect("tables");
                let (level, file) = edit.new_files[0].clone();
                let mut again = VersionEdit::for_family(edit.family);
                again.add_file(level, file);
                e.push(again);
            }),
        ),
        case(
            "overlapping tables on a sorted level",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let edit = e
                    .iter()
                    .rev()
                    .find(|e| !e.new_files.is_empty())
                    .expect("tables");
                let mut twins = VersionEdit::for_family(edit.family);
                for number in [2001, 2002] {
                    let mut file = edit.new_files[0].1.clone();
                    file.number = FileNo(number);
                    twins.add_file(Level(4), file);
                }
                e.push(twins);
            }),
        ),
        case(
            "a table that ends before it begins",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                file_edit(e, |f| std::mem::swap(&mut f.smallest, &mut f.largest));
            }),
        ),
        case(
            "a table of another size",
            ".sst",
            CORRUPTION,
            AtOpen,
            manifest(|e| file_edit(e, |f| f.size += 1)),
        ),
        case(
            "a table of a huge size",
            ".sst",
            CORRUPTION,
            AtOpen,
            manifest(|e| file_edit(e, |f| f.size = 1 << 60)),
        ),
        case(
            "a table with a huge number",
            "",
            ABSENT,
            AtOpen,
            manifest(|e| file_edit(e, |f| f.number = FileNo((1 << 62) - 1))),
        ),
        case(
            "a table of another database",
            ".sst",
            CORRUPTION,
            AtOpen,
            manifest(|e| file_edit(e, |f| f.unique_id = Some([1, 2]))),
        ),
        case(
            "a level beyond the tree",
            "level",
            ABSENT,
            AtOpen,
            manifest(|e| {
                let edit = e
                    .iter_mut()
                    .rev()
                    .find(|e| !e.new_files.is_empty())
                    .expect("tables");
                edit.new_files[0].0 = Level(60);
            }),
        ),
        case(
            "a boundary key of another order",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                file_edit(e, |f| {
                    f.largest = InternalKey::new(b"a", Seq(1), ValueType::Value)
                });
            }),
        ),
        case(
            "an incomplete atomic group",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId::DEFAULT);
                edit.remaining_in_group = Some(5);
                e.push(edit);
                e.push(VersionEdit::for_family(FamilyId::DEFAULT));
            }),
        ),
        case(
            "a tag that must be understood",
            m,
            UNSUPPORTED,
            AtOpen,
            manifest_record(with(999, b"abc")),
        ),
        case(
            "a huge varint for a number",
            m,
            CORRUPTION,
            AtOpen,
            manifest_record(with(3, &[0xff; 11])),
        ),
        case(
            "a huge length of a name",
            m,
            CORRUPTION,
            AtOpen,
            manifest_record(with(1, &[0xff, 0xff, 0xff, 0xff, 0x0f, b'x'])),
        ),
        case(
            "a new file of huge keys",
            m,
            CORRUPTION,
            AtOpen,
            manifest_record(with(103, &[1, 9, 9, 0xff, 0xff, 0xff, 0xff, 0x0f])),
        ),
        case(
            "a record that ends in a varint",
            m,
            CORRUPTION,
            AtOpen,
            manifest_record(vec![0x80, 0x80, 0x80]),
        ),
    ]
}
