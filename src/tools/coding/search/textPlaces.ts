/**
 * Finds a text in the text of a file. Rule: the time grows with the sum of both lengths, for any contents, because a model writes both. A
 * line end is found whether the file has LF or CR LF there.
 */
export interface TextPlace {
  at: number;
  length: number;
}

/**
 * The positions of `searchedText`, in their order. With `overlapping`, `aa` occurs twice in `aaa`. They are found one at a time, because
 * there may be millions.
 */
export function* placesIn(
  { text }: { readonly text: string },
  searchedText: string,
  { overlapping }: { overlapping: boolean },
): Generator<TextPlace, undefined> {
  const sought = searchedText.replaceAll('\r\n', '\n');
  if (sought === '') return;
  const plain = text.replaceAll('\r\n', '\n');
  const borders = bordersOf(sought);
  const [startOf, endOf] = [positionsIn(text), positionsIn(text)];
  let matched = 0;
  for (let end = 1; end <= plain.length; end += 1) {
    matched = matchedWith(sought, borders, matched, plain.charCodeAt(end - 1));
    if (matched < sought.length) continue;
    const at = startOf(end - sought.length);
    yield { at, length: endOf(end) - at };
    matched = overlapping ? (borders[matched - 1] ?? 0) : 0;
  }
}

/** The length of the searched text's beginning that ends at a character, if one of length `matched` ended at the previous character. */
function matchedWith(sought: string, borders: Uint32Array, matched: number, unit: number): number {
  let length = matched;
  while (length > 0 && sought.charCodeAt(length) !== unit) length = borders[length - 1] ?? 0;
  return sought.charCodeAt(length) === unit ? length + 1 : length;
}

/** For each beginning of a text: the length of its longest proper beginning that is also its end. */
function bordersOf(sought: string): Uint32Array {
  const borders = new Uint32Array(sought.length);
  for (let at = 1; at < sought.length; at += 1) {
    borders[at] = matchedWith(sought, borders, borders[at - 1] ?? 0, sought.charCodeAt(at));
  }
  return borders;
}

/** Maps positions of the text with LF only to those of the text itself. Each position is at least the one before. */
function positionsIn(text: string): (at: number) => number {
  let before = 0;
  let next = text.indexOf('\r\n');
  return (at) => {
    while (next !== -1 && next - before < at) {
      before += 1;
      next = text.indexOf('\r\n', next + 2);
    }
    return at + before;
  };
}
