//! Tables that are damaged, or whole and wrong.

use crate::common::Rng;
use crate::damage::{HUGE, change, cut, files, flip, footer, index_to, len, table};
use crate::{ABSENT, CORRUPTION, Case, How, Shows, UNSUPPORTED, case, opened, whole};
use esker_format::footer::{BlockHandle, Footer};
use std::path::Path;

pub(crate) fn table_cases() -> Vec<Case> {
    use Shows::{AtOpen, AtRead};
    let s = ".sst";
    let zero = |from: fn(&Footer, u64) -> u64| -> Box<dyn Fn(&Path)> {
        whole(move |d| {
            change(&table(d), |b| {
                let at = from(&footer(b), b.len() as u64) as usize;
                b[at..at + 8].fill(0xee);
            });
        })
    };
    vec![
        case(
            "a table is missing",
            s,
            ABSENT,
            AtOpen,
            whole(|d| std::fs::remove_file(table(d)).expect("there")),
        ),
        opened(
            case(
                "a table is missing, and few may be open",
                s,
                ABSENT,
                AtOpen,
                whole(|d| std::fs::remove_file(table(d)).expect("there")),
            ),
            How::FewFiles,
        ),
        case(
            "a table is empty",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&table(d), 0)),
        ),
        case(
            "a table lost its second half",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let path = table(d);
                cut(&path, len(&path) / 2);
            }),
        ),
        opened(
            case(
                "a table is cut, and few may be open",
                s,
                CORRUPTION,
                AtOpen,
                whole(|d| {
                    let path = table(d);
                    cut(&path, len(&path) - 1);
                }),
            ),
            How::FewFiles,
        ),
        case(
            "a table has a byte too many",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| change(&table(d), |b| b.push(0))),
        ),
        case(
            "a table is zeroed",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| change(&table(d), |b| b.fill(0))),
        ),
        case(
            "a table is random",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let mut rng = Rng::new(5);
                change(&table(d), |b| {
                    b.iter_mut().for_each(|x| *x = rng.next() as u8)
                });
            }),
        ),
        case(
            "a table's magic number is flipped",
            s,
            CORRUPTION,
            AtOpen,
            flip(s, |n| n - 1),
        ),
        case(
            "a table's version is unknown",
            s,
            UNSUPPORTED,
            AtOpen,
            flip(s, |n| n - 10),
        ),
        case(
            "two tables are swapped",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let all = files(d, ".sst");
                let (a, b) = (&all[0], &all[1]);
                let first = std::fs::read(a).expect("there");
                std::fs::copy(b, a).expect("copied");
                std::fs::write(b, first).expect("written");
            }),
        ),
        case(
            "a table's metaindex is damaged",
            s,
            CORRUPTION,
            AtOpen,
            zero(|f, _| f.metaindex.offset),
        ),
        case(
            "a table's index is damaged",
            s,
            CORRUPTION,
            AtOpen,
            zero(|f, _| f.index.offset),
        ),
        case(
            "the first data block is damaged",
            s,
            CORRUPTION,
            AtRead,
            zero(|_, _| 30),
        ),
        case(
            "an index partition is damaged",
            s,
            CORRUPTION,
            AtRead,
            zero(|f, _| f.index.offset - 60),
        ),
        case(
            "the index leads to itself",
            s,
            CORRUPTION,
            AtRead,
            index_to(|top| top),
        ),
        case(
            "the index leads into its own middle",
            s,
            CORRUPTION,
            AtRead,
            index_to(|top| BlockHandle {
                offset: top.offset + 3,
                size: top.size,
            }),
        ),
        case(
            "the index leads to the first data block",
            s,
            CORRUPTION,
            AtRead,
            index_to(|_| BlockHandle {
                offset: 0,
                size: 505,
            }),
        ),
        case(
            "the index leads beyond the file",
            s,
            CORRUPTION,
            AtRead,
            index_to(|top| BlockHandle {
                offset: 1 << 40,
                size: top.size,
            }),
        ),
        case(
            "the index leads to a huge block",
            s,
            CORRUPTION,
            AtRead,
            index_to(|top| BlockHandle {
                offset: top.offset,
                size: 1 << 40,
            }),
        ),
        case(
            "the index handle is huge",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                change(&table(d), |b| {
                    let at = b.len() - 53;
                    b[at + 1..at + 11].copy_from_slice(&HUGE);
                    b[at + 11..at + 21].copy_from_slice(&HUGE);
                });
            }),
        ),
    ]
}
