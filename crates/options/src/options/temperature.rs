//! Temperatures of files by age, as text `{{temperature=kWarm;age=3600;}:{...}}`; the outer braces
//! may be missing.

use super::value::OptionValue;
use crate::enums::Temperature;
use esker_format::options_text::parse_pairs;
use esker_lsm::policy::FileTemperatureAge;
use esker_status::{Error, Result};

impl OptionValue for Vec<FileTemperatureAge> {
    const TYPE: &'static str = "list";

    fn print(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let one = |t: &FileTemperatureAge| {
            format!("{{temperature={};age={};}}", t.temperature.name(), t.age)
        };
        let all: Vec<_> = self.iter().map(one).collect();
        format!("{{{}}}", all.join(":"))
    }

    fn parse_into(&mut self, text: &str) -> Result<()> {
        self.clear();
        let text = text.trim();
        let list = text.strip_prefix("{{").and_then(|t| t.strip_suffix("}}"));
        let list = list.or_else(|| text.strip_prefix('{')?.strip_suffix('}'));
        match list.unwrap_or(text) {
            "" => Ok(()),
            list => list.split("}:{").try_for_each(|item| {
                self.push(one(item, text)?);
                Ok(())
            }),
        }
    }
}

/// `temperature=T;age=N`
fn one(item: &str, text: &str) -> Result<FileTemperatureAge> {
    let mut out = FileTemperatureAge {
        temperature: Temperature::Unknown,
        age: 0,
    };
    for (name, value) in parse_pairs(item)? {
        match name.as_str() {
            "temperature" => out.temperature.parse_into(&value)?,
            "age" => out.age.parse_into(&value)?,
            _ => {
                return Err(Error::invalid_argument(format!(
                    "{text:?} is not a list of ages as {{{{temperature=kWarm;age=SECONDS;}}:{{...}}}}"
                )));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_printed_and_parsed() {
        let warm = FileTemperatureAge {
            temperature: Temperature::Warm,
            age: 3600,
        };
        let cold = FileTemperatureAge {
            temperature: Temperature::Cold,
            age: 2 << 20,
        };
        for list in [vec![], vec![warm], vec![warm, cold]] {
            let mut out = vec![cold];
            out.parse_into(&list.print()).expect("own print");
            assert_eq!(out, list);
        }
        let mut out: Vec<FileTemperatureAge> = Vec::new();
        out.parse_into("{temperature=kWarm;age=3600}:{age=2m;temperature=kCold;}")
            .expect("without outer braces");
        assert_eq!(out, [warm, cold]);
        for text in [
            "{temperature=kTepid;age=1;}",
            "{age=x}",
            "{when=1}",
            "{age=1}{age=2}",
        ] {
            assert!(out.parse_into(text).is_err(), "{text}");
        }
    }
}
