/**
 * The text that a model receives about a command: its output, and its end. Rule: a note in brackets follows
 * the output, and a part of the output that is left out can be read in the file that a note names.
 */
import type { Output, ShellEnd } from '../shell.ts';

export function commandText(output: Output, notes: readonly string[]): string {
  const file = output.spilled;
  const savedPart = file && (file.bytes === output.bytes ? 'all of it' : `the first ${file.bytes} bytes`);
  const fileNotes = file ? [`${savedPart} can be read in ${file.path}`] : [];
  const printed = output.text().trimEnd();
  return [...(printed === '' ? [] : [printed]), ...[...fileNotes, ...notes].map((note) => `[${note}]`)].join('\n');
}

/** The end of a command, as notes in brackets. Empty if it succeeded. */
export function endNotes(end: Exclude<ShellEnd, { kind: 'not_started' }>, timeoutMs: number): string[] {
  if (end.kind === 'timeout') {
    const unended = end.unended > 0 ? [`${end.unended} of its processes could not be ended`] : [];
    return [`timed out after ${Math.round(timeoutMs)} ms and was ended`, ...unended];
  }
  const left = end.leftRunning ? ['what it left running was ended'] : [];
  if (end.kind === 'killed') return [...left, `killed by ${end.by}`];
  return end.code === 0 ? left : [...left, `exit code ${end.code}`];
}
