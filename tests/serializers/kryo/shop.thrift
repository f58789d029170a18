namespace java shop.thrift

enum Kind { SMALL = 1, LARGE = 5 }

struct Part { 1: string name, 2: i32 count }

union Choice { 1: string text, 2: i64 number }

struct Parcel {
  1: required i64 id,
  2: optional string name,
  3: list<Part> parts,
  4: map<string, i32> stock,
  5: set<i16> sizes,
  6: Kind kind,
  7: bool paid,
  8: double price,
  9: binary raw,
  10: Choice choice,
  11: byte small,
  13: optional i32 count = 7,
  15: list<bool> flags,
  20: map<i64, list<Part>> nested,
  -1: string odd
}
