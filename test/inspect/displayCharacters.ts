/**
 * True if a text has a character that would control the display or is invisible. Written by hand, not taken from the
 * code: C0 without line break and tab, DEL, C1, direction marks and isolates, separators, zero-width characters, tags.
 */
export const drives = (text: string): boolean =>
  [...text].some((character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code === 0x0a || code === 0x09) return false;
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;
    if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return true;
    if (code >= 0xe0000 && code <= 0xe007f) return true;
    return [0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x2060, 0xfeff].includes(code);
  });
