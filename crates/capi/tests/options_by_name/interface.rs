//! The specification's setters and getters, and calls of functions by name in a shared library.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uchar, c_uint, c_void};
use std::path::{Path, PathBuf};

/// A value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(i128),
    Real(f64),
}

/// The C type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    UnsignedInt,
    UnsignedChar,
    Bool,
    U8,
    U32,
    I32,
    U64,
    I64,
    Size,
    Double,
}

impl Kind {
    fn of(text: &str) -> Option<Kind> {
        Some(match text {
            "int" => Kind::Int,
            "unsigned int" => Kind::UnsignedInt,
            "unsigned char" => Kind::UnsignedChar,
            "bool" | "_Bool" => Kind::Bool,
            "uint8_t" => Kind::U8,
            "uint32_t" => Kind::U32,
            "int32_t" => Kind::I32,
            "uint64_t" => Kind::U64,
            "int64_t" => Kind::I64,
            "size_t" => Kind::Size,
            "double" => Kind::Double,
            _ => return None,
        })
    }

    /// Values that an option of this type must take, unless it is one of a closed set.
    pub(crate) fn trials(self) -> Vec<Number> {
        let whole = |values: &[i128]| values.iter().map(|v| Number::Whole(*v)).collect();
        match self {
            Kind::Double => vec![Number::Real(0.375), Number::Real(7.5), Number::Real(0.0)],
            Kind::Bool | Kind::UnsignedChar => whole(&[1, 0]),
            Kind::U8 => whole(&[1, 2, 0, 200]),
            Kind::U64 | Kind::Size => whole(&[1, 12_345, 3, 0, (1 << 40) + 7]),
            _ => whole(&[1, 2, 4, 12_345, 0, 1_000_000_007]),
        }
    }
}

/// A setter and its getter.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) setter: String,
    pub(crate) getter: String,
    pub(crate) kind: Kind,
}

/// A type of handles with options.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) create: String,
    pub(crate) destroy: String,
    pub(crate) pairs: Vec<Pair>,
}

/// A function of the interface.
struct Function {
    params: Vec<String>,
    result: String,
}

/// The whole interface.
pub(crate) struct Interface {
    functions: BTreeMap<String, Function>,
    refused: String,
}

/// The type of a parameter, without its name.
fn type_of(param: &str) -> String {
    let end = param.rfind([' ', '*']).map_or(param.len(), |at| at + 1);
    param[..end].trim().replace("const ", "")
}

impl Interface {
    /// Reads the specification.
    pub(crate) fn read() -> Interface {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let spec = std::fs::read_to_string(root.join("spec/rocksdb.api")).expect("the spec");
        let mut functions = BTreeMap::new();
        for line in spec.lines().filter_map(|l| l.strip_prefix("fn ")) {
            let (name, rest) = line.split_once('(').expect("a parameter list");
            let (params, result) = rest.rsplit_once(") -> ").expect("a result");
            // A callback among the parameters makes the function none of ours.
            let params = if params.contains('(') {
                vec!["callback".to_owned(); 9]
            } else {
                params.split(", ").map(type_of).collect()
            };
            let result = result.replace("const ", "");
            functions.insert(name.to_owned(), Function { params, result });
        }
        let refused = root.join("src/generated/refused.rs");
        Interface {
            functions,
            refused: std::fs::read_to_string(refused).expect("the refusals"),
        }
    }

    fn is_refused(&self, name: &str) -> bool {
        self.refused.contains(&format!("fn {name}("))
    }

    fn pair(&self, setter: &str, of: &Function) -> Option<(String, Pair)> {
        let getter = setter.replacen("_set_", "_get_", 1);
        let back = self.functions.get(&getter)?;
        let [handle, value] = of.params.as_slice() else {
            return None;
        };
        let kind = Kind::of(value)?;
        let fits = back.params == [handle.clone()] && Kind::of(&back.result) == Some(kind);
        if !fits || self.is_refused(setter) || self.is_refused(&getter) {
            return None;
        }
        let setter = setter.to_owned();
        Some((
            handle.clone(),
            Pair {
                setter,
                getter,
                kind,
            },
        ))
    }

    /// The types of handles that are made without arguments, with their setters and getters.
    pub(crate) fn objects(&self) -> Vec<Object> {
        let mut pairs: BTreeMap<String, Vec<Pair>> = BTreeMap::new();
        for (name, function) in &self.functions {
            if name.contains("_set_")
                && let Some((handle, pair)) = self.pair(name, function)
            {
                pairs.entry(handle).or_default().push(pair);
            }
        }
        let creator = |handle: &String| {
            self.functions.iter().find_map(|(name, f)| {
                let fits = f.result == *handle && f.params == [""] && name.contains("create");
                (fits && !self.is_refused(name)).then(|| name.clone())
            })
        };
        let destroyer = |handle: &String| {
            self.functions.iter().find_map(|(name, f)| {
                let fits = f.params == [handle.clone()] && name.ends_with("_destroy");
                (fits && !self.is_refused(name)).then(|| name.clone())
            })
        };
        pairs
            .into_iter()
            .filter_map(|(handle, pairs)| {
                Some(Object {
                    create: creator(&handle)?,
                    destroy: destroyer(&handle)?,
                    pairs,
                })
            })
            .collect()
    }
}

/// A shared library with the interface.
pub(crate) struct Library(libloading::Library);

impl Library {
    /// The one that was built with this test.
    pub(crate) fn ours() -> Library {
        let test = std::env::current_exe().expect("a path");
        let here: PathBuf = test.parent().expect("a directory").join("librocksdb.so");
        Library::open(&here)
    }

    pub(crate) fn open(path: &Path) -> Library {
        // SAFETY: loading the library runs nothing that has conditions.
        let opened = unsafe { libloading::Library::new(path) };
        Library(opened.unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    fn symbol<T: Copy>(&self, name: &str) -> T {
        // SAFETY: the caller names the type that the specification gives.
        let found = unsafe { self.0.get::<T>(name) };
        *found.unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        // SAFETY: the symbol is only looked for.
        unsafe { self.0.get::<unsafe extern "C" fn()>(name) }.is_ok()
    }

    pub(crate) fn make(&self, create: &str) -> *mut c_void {
        let create: unsafe extern "C" fn() -> *mut c_void = self.symbol(create);
        // SAFETY: it takes nothing.
        let handle = unsafe { create() };
        assert!(!handle.is_null());
        handle
    }

    pub(crate) fn destroy(&self, destroy: &str, handle: *mut c_void) {
        let destroy: unsafe extern "C" fn(*mut c_void) = self.symbol(destroy);
        // SAFETY: the handle is of the type that it takes, and is not used any more.
        unsafe { destroy(handle) }
    }
}

/// Both directions for one C type.
macro_rules! access {
    ($($kind:ident => $c:ty, $wrap:ident, $as:ty;)*) => {
        impl Library {
            pub(crate) fn get(&self, getter: &str, kind: Kind, handle: *mut c_void) -> Number {
                match kind {
                    $(Kind::$kind => {
                        let get: unsafe extern "C" fn(*mut c_void) -> $c = self.symbol(getter);
                        // SAFETY: the handle and the result are of the types that the specification
                        // gives.
                        Number::$wrap(unsafe { get(handle) } as $as)
                    })*
                }
            }

            pub(crate) fn set(&self, setter: &str, kind: Kind, handle: *mut c_void, value: Number) {
                match (kind, value) {
                    $((Kind::$kind, Number::$wrap(value)) => {
                        let set: unsafe extern "C" fn(*mut c_void, $c) = self.symbol(setter);
                        // SAFETY: the handle and the value are of the types that the specification
                        // gives.
                        unsafe { set(handle, value as $c) }
                    })*
                    _ => panic!("{setter}: {value:?}"),
                }
            }
        }
    };
}

access! {
    Int => c_int, Whole, i128;
    UnsignedInt => c_uint, Whole, i128;
    UnsignedChar => c_uchar, Whole, i128;
    Bool => u8, Whole, i128;
    U8 => u8, Whole, i128;
    U32 => u32, Whole, i128;
    I32 => i32, Whole, i128;
    U64 => u64, Whole, i128;
    I64 => i64, Whole, i128;
    Size => usize, Whole, i128;
    Double => f64, Real, f64;
}
