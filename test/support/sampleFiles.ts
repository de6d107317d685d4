/** Files for tests: the beginnings of a PDF and of sounds, and texts. */
const encoder = new TextEncoder();
export const bytesOf = (text: string): Uint8Array => encoder.encode(text);
export const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

export const pdf = bytesOf('%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n');
export const wav = bytesOf('RIFF\u0024\0\0\0WAVEfmt ');
export const markdown = bytesOf('# Notes\n\nBuy milk, süß.\n');

/** A PDF of this many bytes. */
export function largePdf(bytes: number): Uint8Array {
  const made = new Uint8Array(bytes);
  made.set(pdf.subarray(0, bytes));
  return made;
}
