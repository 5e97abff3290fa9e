//! Protocol Buffers, read field by field, without a description of their messages.
//!
//! In: bytes of a message. Out: its fields by number. See <https://protobuf.dev/programming-guides/encoding/>.

/// A message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message<'a> {
    fields: Vec<(u64, Field<'a>)>,
}

#[derive(Clone, Copy, Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Reads a message.
    ///
    /// # Panics
    ///
    /// When the bytes are no whole message.
    pub(crate) fn new(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Number(fixed(&mut bytes)),
                2 => {
                    let size = varint(&mut bytes) as usize;
                    let (taken, rest) = bytes.split_at(size);
                    bytes = rest;
                    Field::Bytes(taken)
                }
                other => panic!("wire type {other}"),
            };
            fields.push((tag >> 3, field));
        }
        Self { fields }
    }

    fn all(&self, number: u64) -> impl Iterator<Item = Field<'a>> {
        let fields = self.fields.iter().filter(move |(of, _)| *of == number);
        fields.map(|(_, field)| *field)
    }

    /// All of a repeated field's messages; of a field that is there once, too.
    pub(crate) fn messages(&self, number: u64) -> Vec<Self> {
        self.all(number)
            .map(|field| match field {
                Field::Bytes(bytes) => Self::new(bytes),
                Field::Number(_) => panic!("field {number} is no message"),
            })
            .collect()
    }

    /// A message whose occurrences are parts of one.
    pub(crate) fn message(&self, number: u64) -> Self {
        let parts = self.messages(number).into_iter();
        Self {
            fields: parts.flat_map(|part| part.fields).collect(),
        }
    }

    /// All numbers of a repeated field, packed or not.
    pub(crate) fn numbers(&self, number: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        for field in self.all(number) {
            match field {
                Field::Number(value) => numbers.push(value),
                Field::Bytes(mut bytes) => {
                    while !bytes.is_empty() {
                        numbers.push(varint(&mut bytes));
                    }
                }
            }
        }
        numbers
    }

    /// A number, which is 0 where it is not there.
    pub(crate) fn number(&self, number: u64) -> u64 {
        self.numbers(number).last().copied().unwrap_or(0)
    }

    /// All texts of a repeated field.
    ///
    /// # Panics
    ///
    /// The bytes of a field.
    pub(crate) fn bytes(&self, number: u64) -> Vec<Vec<u8>> {
        self.all(number)
            .map(|field| match field {
                Field::Bytes(bytes) => bytes.to_vec(),
                Field::Number(_) => panic!("field {number} is no bytes"),
            })
            .collect()
    }

    /// When one is not UTF-8.
    pub(crate) fn texts(&self, number: u64) -> Vec<&'a str> {
        self.all(number)
            .map(|field| match field {
                Field::Bytes(bytes) => std::str::from_utf8(bytes).expect("UTF-8"),
                Field::Number(_) => panic!("field {number} is no text"),
            })
            .collect()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("another byte");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            return value;
        }
    }
    panic!("a number of more than 64 bits");
}

fn fixed(bytes: &mut &[u8]) -> u64 {
    let (taken, rest) = bytes.split_first_chunk().expect("8 bytes");
    *bytes = rest;
    u64::from_le_bytes(*taken)
}
