//! The data of an HTML page, read without its viewer.
//!
//! In: the text of a page. Out: its header and columns, or a panic that says what is wrong.

use std::collections::BTreeMap;
use std::io::Read as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::read::ZlibDecoder;
use serde_json::Value;

/// Data that a page carries.
#[derive(Debug)]
pub struct PageData {
    /// Names, and what there is to say of each profile.
    pub header: Value,
    /// For each profile its columns by name.
    pub columns: Vec<BTreeMap<String, Vec<u64>>>,
}

impl PageData {
    /// Reads a page.
    ///
    /// # Panics
    ///
    /// When it holds no data, or other data than its header says.
    #[track_caller]
    pub fn read(page: &str) -> Self {
        let (_, data) = page
            .split_once(r#"id="data">"#)
            .expect("an element of data");
        let (data, _) = data.split_once("</script>").expect("its end");
        let packed = BASE64_STANDARD.decode(data).expect("base64");
        let mut bytes = Vec::new();
        ZlibDecoder::new(&*packed)
            .read_to_end(&mut bytes)
            .expect("a zlib stream");
        let mut rest = &*bytes;
        let size = number(&mut rest) as usize;
        let (header, mut rest) = rest.split_at(size);
        let header: Value = serde_json::from_slice(header).expect("a header");
        let sections = header["profiles"].as_array().expect("profiles");
        let columns = sections
            .iter()
            .map(|section| {
                let shapes = section["columns"].as_array().expect("columns");
                let column = |shape: &Value| {
                    let name = shape[0].as_str().expect("a name").to_owned();
                    let count = shape[1].as_u64().expect("a count");
                    (name, (0..count).map(|_| number(&mut rest)).collect())
                };
                shapes.iter().map(column).collect()
            })
            .collect();
        assert!(rest.is_empty(), "{} bytes belong to no column", rest.len());
        Self { header, columns }
    }
}

/// The next number: groups of seven bits, the lowest first.
fn number(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("another byte");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            break;
        }
    }
    value
}
