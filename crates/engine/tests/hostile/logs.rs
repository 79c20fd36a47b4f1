//! Logs that are damaged, or whole and wrong; and callers with the wrong options.

use crate::common::Rng;
use crate::damage::{HUGE, batch, change, cut, file, files, flip, len, log_record};
use crate::{ABSENT, CORRUPTION, Case, How, REFUSED, Shows, case, opened, whole};

pub(crate) fn log_cases() -> Vec<Case> {
    use Shows::AtOpen;
    let l = ".log";
    let default = |tag: u8, rest: &[u8]| [&[tag], rest].concat();
    vec![
        case(
            "a flipped byte in the log",
            l,
            CORRUPTION,
            AtOpen,
            flip(l, |n| n / 2),
        ),
        case(
            "a flipped record type in the log",
            l,
            CORRUPTION,
            AtOpen,
            flip(l, |_| 6),
        ),
        case(
            "the log is cut",
            l,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let path = file(d, ".log");
                cut(&path, len(&path) - 100);
            }),
        ),
        case(
            "the log is random",
            l,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let mut rng = Rng::new(9);
                change(&file(d, ".log"), |b| {
                    b.iter_mut().for_each(|x| *x = rng.next() as u8)
                });
            }),
        ),
        case(
            "a record shorter than a batch's header",
            l,
            CORRUPTION,
            AtOpen,
            log_record(vec![1, 2, 3]),
        ),
        case(
            "a batch with an unknown record",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(1, &default(0x7d, b"\x01k\x01v"))),
        ),
        case(
            "a batch that counts too much",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(5, &default(1, b"\x01k\x01v"))),
        ),
        case(
            "a batch that counts too little",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(0, &default(1, b"\x01k\x01v"))),
        ),
        case(
            "a batch with a huge key length",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(1, &default(1, &HUGE))),
        ),
        case(
            "a batch with a huge value length",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(1, &default(1, b"\x01k\xff\xff\xff\xff\x0f"))),
        ),
        case(
            "a batch cut in a record",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(1, &default(1, b"\x05key"))),
        ),
        case(
            "a range that ends before it begins",
            l,
            ABSENT,
            AtOpen,
            log_record(batch(1, &default(0x0f, b"\x01z\x01a"))),
        ),
    ]
}

pub(crate) fn caller_cases() -> Vec<Case> {
    use Shows::{AtOpen, ForWriters};
    let none = || whole(|_| {});
    vec![
        opened(
            case("another comparator", "comparator", REFUSED, AtOpen, none()),
            How::WrongComparator,
        ),
        opened(
            case(
                "a family that does not exist",
                "nowhere",
                REFUSED,
                AtOpen,
                none(),
            ),
            How::UnknownFamily,
        ),
        opened(
            case(
                "a family is not named",
                "other",
                REFUSED,
                ForWriters,
                none(),
            ),
            How::FamilyNotNamed,
        ),
        opened(
            case("error_if_exists", "exists", REFUSED, ForWriters, none()),
            How::ErrorIfExists,
        ),
        case(
            "an empty directory",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| {
                for f in files(d, "") {
                    std::fs::remove_file(f).expect("ours");
                }
            }),
        ),
        case(
            "only foreign files",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| {
                for f in files(d, "") {
                    std::fs::remove_file(f).expect("ours");
                }
                std::fs::write(d.join("letter.txt"), "hello").expect("written");
            }),
        ),
    ]
}
