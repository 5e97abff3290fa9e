use super::*;
use crate::profile::{Unit, fold};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read as _;

fn written(text: &[u8], unit: Unit) -> Value {
    let profile = fold::parse(text, unit).unwrap();
    let mut out = Vec::new();
    write(&profile, &Style::default(), &mut out).unwrap();
    let mut json = String::new();
    GzDecoder::new(&*out).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

/// The columns of a table are as long as it says.
fn assert_is_table(name: &str, table: &Value) {
    for (column, values) in table.as_object().unwrap() {
        if let Some(values) = values.as_array() {
            assert_eq!(json!(values.len()), table["length"], "{name}.{column}");
        }
    }
}

#[test]
fn tables_are_whole_and_weights_add_up() {
    let file = written(
        b"a;main;work 3\na;main;read_[k] 2\nb;main 4\n",
        Unit::Samples,
    );
    for (name, table) in file["shared"].as_object().unwrap() {
        if table.is_object() {
            assert_is_table(name, table);
        }
    }
    let threads = file["threads"].as_array().unwrap();
    let sums: Vec<_> = (threads.iter())
        .map(|thread| {
            assert_is_table("samples", &thread["samples"]);
            assert_is_table("markers", &thread["markers"]);
            let times = thread["samples"]["time"].as_array().unwrap();
            assert!(times.is_sorted_by_key(|time| time.as_f64()));
            let weights = thread["samples"]["weight"].as_array().unwrap();
            let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
            (thread["name"].as_str().unwrap(), sum)
        })
        .collect();
    assert_eq!(sums, [("a", 5), ("b", 4)]);
}

#[test]
fn short_waits_keep_their_length() {
    let file = written(b"a;wait 300\n", Unit::Nanoseconds);
    let samples = &file["threads"][0]["samples"];
    assert_eq!(samples["weightType"], "tracing-ms");
    assert_eq!(samples["weight"][0].as_f64(), Some(0.3));
    let bytes = written(b"a;read 5000000000\n", Unit::Events("bytes".to_owned()));
    assert_eq!(
        bytes["threads"][0]["samples"]["weight"][0],
        json!(5_000_000_000_u64)
    );
}
