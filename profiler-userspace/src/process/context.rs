//! The context that a process publishes in its memory, for those who look at it from outside.
//!
//! In: the memory of a process, and where in it a context begins. Out: a [`ProcessContext`], none where nothing is published yet, or
//! why it cannot be read. The process may write anything there, at any time: every number is checked, and what changes while it
//! is read is read again, a few times.
//! The layout, of version 2: OpenTelemetry's OTEP 4719
//! (<https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4719-process-ctx.md>).

use super::unread::Unread;
use crate::profile::process_context::ProcessContext;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// Names of the mapping that begins with a context, as `/proc/PID/maps` shows them: memory that was named, private or shared, or a memory
/// file where the kernel does not name memory.
pub(super) const MAPPINGS: [&[u8]; 4] = [
    b"[anon_shmem:OTEL_CTX]",
    b"[anon:OTEL_CTX]",
    b"/memfd:OTEL_CTX",
    b"/memfd:OTEL_CTX (deleted)",
];

/// The most that is read of a payload, in bytes. Those of programs have some hundred.
pub(crate) const MAX_CONTEXT_BYTES: u32 = 64 << 10;

/// The version of the layout. Version 1 has other places for its fields.
pub(crate) const CONTEXT_VERSION: u32 = 2;

/// How often a context is read that changes meanwhile.
const TRIES: usize = 3;

/// The beginning of the mapping, little-endian.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Header {
    payload_size: u32,
    /// Changes with each change; 0 while one is made.
    published_at_ns: u64,
    /// The payload's address in the process.
    payload: u64,
}

impl Header {
    const BYTES: usize = 32;

    /// A context's version and, if it is ours, its header; none where none is published.
    fn of(bytes: &[u8; Self::BYTES]) -> Option<(u32, Self)> {
        let rest = bytes.strip_prefix(b"OTEL_CTX")?;
        let (version, rest) = rest.split_first_chunk()?;
        let (payload_size, rest) = rest.split_first_chunk()?;
        let (published_at_ns, rest) = rest.split_first_chunk()?;
        let payload = rest.first_chunk()?;
        let header = Self {
            payload_size: u32::from_le_bytes(*payload_size),
            published_at_ns: u64::from_le_bytes(*published_at_ns),
            payload: u64::from_le_bytes(*payload),
        };
        Some((u32::from_le_bytes(*version), header))
    }
}

/// The payload: `opentelemetry.proto.processcontext.v1development.ProcessContext`. Its field 2, attributes beside those of the
/// resource, says nothing of the service.
#[derive(Clone, PartialEq, Message)]
struct Payload {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
}

/// The context at an address of memory, of which `read` fills bytes; none where none is published, or where it says nothing of the
/// service.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn read(
    address: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Option<()>,
) -> Result<Option<ProcessContext>, Unread> {
    for _ in 0..TRIES {
        let Some(before) = header(address, &mut read)? else {
            return Ok(None);
        };
        if before.payload_size > MAX_CONTEXT_BYTES {
            return Err(Unread::TooLarge);
        }
        let mut payload = vec![0; before.payload_size as usize];
        // While it is changed, the payload may be gone already.
        let is_read = read(before.payload, &mut payload).is_some();
        let is_whole = before.published_at_ns != 0 && header(address, &mut read)? == Some(before);
        if is_whole {
            return match is_read {
                true => parse(&payload),
                false => Err(Unread::Broken),
            };
        }
    }
    Err(Unread::Broken)
}

/// The header at an address; none where none is published.
fn header(
    address: u64,
    read: &mut impl FnMut(u64, &mut [u8]) -> Option<()>,
) -> Result<Option<Header>, Unread> {
    let mut bytes = [0; Header::BYTES];
    read(address, &mut bytes).ok_or(Unread::Broken)?;
    match Header::of(&bytes) {
        None => Ok(None),
        Some((CONTEXT_VERSION, header)) => Ok(Some(header)),
        Some(_) => Err(Unread::OtherVersion),
    }
}

/// The context that a payload says.
fn parse(payload: &[u8]) -> Result<Option<ProcessContext>, Unread> {
    let payload = Payload::decode(payload).map_err(|_| Unread::Broken)?;
    let attributes = payload.resource.unwrap_or_default().attributes;
    let texts = attributes.iter().filter_map(|attribute| {
        match attribute.value.as_ref()?.value.as_ref()? {
            Value::StringValue(text) => Some((&*attribute.key, &**text)),
            _ => None,
        }
    });
    Ok(ProcessContext::of(texts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
    use proptest::prelude::*;

    /// Where the header lies, and behind it the payload.
    const AT: u64 = 0x7000;

    fn any_value(value: Value) -> AnyValue {
        AnyValue { value: Some(value) }
    }

    fn attribute(key: &str, value: Value) -> KeyValue {
        KeyValue {
            key: key.to_owned(),
            value: Some(any_value(value)),
            ..KeyValue::default()
        }
    }

    fn payload(attributes: Vec<KeyValue>) -> Vec<u8> {
        let resource = Some(Resource {
            attributes,
            ..Resource::default()
        });
        Payload { resource }.encode_to_vec()
    }

    fn shop() -> Vec<u8> {
        payload(vec![
            attribute("service.version", Value::IntValue(2)),
            attribute("service.name", Value::StringValue("shop".to_owned())),
        ])
    }

    /// A header of this version and size, and the payload behind it.
    fn memory(version: u32, size: u32, published: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = b"OTEL_CTX".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(published.to_le_bytes());
        bytes.extend((AT + Header::BYTES as u64).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn published(payload: &[u8]) -> Vec<u8> {
        memory(CONTEXT_VERSION, payload.len() as u32, 9, payload)
    }

    /// Fills bytes from memory that begins at [`AT`].
    fn copy(memory: &[u8], address: u64, into: &mut [u8]) -> Option<()> {
        let begin = usize::try_from(address.checked_sub(AT)?).ok()?;
        let end = begin.checked_add(into.len())?;
        into.copy_from_slice(memory.get(begin..end)?);
        Some(())
    }

    /// The service's name, empty where nothing says it.
    fn name(memory: &[u8]) -> Result<String, Unread> {
        let context = read(AT, |address, into| copy(memory, address, into))?;
        let name = context.as_ref().and_then(ProcessContext::service);
        Ok(name.unwrap_or_default().to_owned())
    }

    fn none() -> Result<String, Unread> {
        Ok(String::new())
    }

    #[test]
    fn a_context_says_which_service_the_process_is_of() {
        assert_eq!(name(&published(&shop())), Ok("shop".to_owned()));
    }

    #[test]
    fn what_is_not_whole_or_of_another_version_has_a_reason() {
        let (shop, size) = (shop(), shop().len() as u32);
        let whole = published(&shop);
        for version in [0, 1, 3] {
            let memory = memory(version, size, 9, &shop);
            assert_eq!(name(&memory), Err(Unread::OtherVersion), "{version}");
        }
        assert_eq!(
            name(&memory(CONTEXT_VERSION, size, 0, &shop)),
            Err(Unread::Broken)
        );
        assert_eq!(name(&memory(CONTEXT_VERSION, 0, 9, &shop)), none());
        for (size, why) in [
            (size - 1, Unread::Broken),
            (size + 1, Unread::Broken),
            (MAX_CONTEXT_BYTES, Unread::Broken),
            (MAX_CONTEXT_BYTES + 1, Unread::TooLarge),
            (u32::MAX, Unread::TooLarge),
        ] {
            assert_eq!(
                name(&memory(CONTEXT_VERSION, size, 9, &shop)),
                Err(why),
                "{size}"
            );
        }
        for cut in 0..whole.len() {
            assert_eq!(name(&whole[..cut]), Err(Unread::Broken), "{cut}");
        }
        let mut other = whole.clone();
        other[0] ^= 1;
        assert_eq!(name(&other), none(), "nothing is published");
        for address in [0, AT + 1, u64::MAX] {
            let mut far = whole.clone();
            far[24..32].copy_from_slice(&address.to_le_bytes());
            assert_eq!(name(&far), Err(Unread::Broken), "{address:#x}");
        }
    }

    #[test]
    fn a_payload_of_the_most_bytes_is_read() {
        let filler = |bytes: usize| {
            let text = "x".repeat(bytes);
            let filler = attribute("filler", Value::StringValue(text));
            let name = attribute("service.name", Value::StringValue("shop".to_owned()));
            payload(vec![filler, name])
        };
        let most = MAX_CONTEXT_BYTES as usize;
        let rest = filler(most).len() - most;
        let (fits, more) = (filler(most - rest), filler(most - rest + 1));
        assert_eq!(fits.len(), most);
        assert_eq!(name(&published(&fits)), Ok("shop".to_owned()));
        assert_eq!(name(&published(&more)), Err(Unread::TooLarge));
    }

    #[test]
    fn what_changes_while_it_is_read_is_read_again() {
        let mut now = published(&shop());
        let (mut changes, mut reads) = (0, 0);
        let mut read_while_it_changes = |times: usize| {
            (changes, reads) = (0, 0);
            read(AT, |address, into| {
                reads += 1;
                copy(&now, address, into)?;
                if address != AT && changes < times {
                    changes += 1;
                    now[16] = now[16].wrapping_add(1);
                }
                Some(())
            })
        };
        assert!(matches!(read_while_it_changes(TRIES - 1), Ok(Some(_))));
        assert_eq!(read_while_it_changes(usize::MAX), Err(Unread::Broken));
        assert_eq!(reads, 3 * TRIES);
    }

    #[test]
    fn payloads_that_nobody_should_write_say_nothing() {
        let mut nested = any_value(Value::StringValue("shop".to_owned()));
        for _ in 0..200 {
            let values = vec![nested];
            nested = any_value(Value::ArrayValue(ArrayValue { values }));
        }
        let nested = attribute("service.name", nested.value.unwrap());
        assert_eq!(
            name(&published(&payload(vec![nested]))),
            Err(Unread::Broken)
        );
        // A text that is none, and a field that has no end.
        let mut not_text = shop();
        let place = not_text.windows(4).position(|bytes| bytes == b"shop");
        not_text[place.unwrap()] = 0xff;
        for bytes in [&*not_text, b"\x0a\xff\xff\xff\xff\x0f", b"\xff"] {
            assert_eq!(name(&published(bytes)), Err(Unread::Broken), "{bytes:?}");
        }
        // As many attributes as there can be, without a key and a value.
        let inner = b"\x0a\x00".repeat(32_760);
        let mut many = vec![0x0a];
        prost::encoding::encode_varint(inner.len() as u64, &mut many);
        many.extend(inner);
        assert_eq!(name(&published(&many)), none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            size: u32, address: u64, published: u64,
        ) {
            let _any = parse(&bytes);
            let _any = name(&bytes);
            let _any = name(&memory(CONTEXT_VERSION, bytes.len() as u32, 9, &bytes));
            let _any = name(&memory(CONTEXT_VERSION, size, published, &bytes));
            let mut far = memory(CONTEXT_VERSION, size % 300, 9, &bytes);
            far[24..32].copy_from_slice(&address.to_le_bytes());
            let _any = name(&far);
        }

        #[test]
        fn changed_bytes_are_read_without_a_panic(at in 0..100_usize, to: u8) {
            let mut memory = published(&shop());
            let at = at % memory.len();
            memory[at] = to;
            let _any = name(&memory);
        }
    }
}
