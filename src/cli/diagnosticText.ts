/** A diagnostic of the log as one line for a person. Rule: one with words of its own is told in them, others by code and detail. */
import type { Json } from '../../machines/internal.ts';
import { shortened } from '../printable.ts';

export function diagnosticText({ code, detail }: { code: string; detail?: Json }, max: number): string {
  const why = (detail as { why?: Json } | undefined)?.why;
  if (code === 'sandbox_missing' && typeof why === 'string')
    return `commands run without a sandbox: ${shortened(why, max)}`;
  return detail === undefined ? code : `${code} ${shortened(JSON.stringify(detail), max)}`;
}
