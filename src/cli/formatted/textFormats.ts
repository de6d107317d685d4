/**
 * The forms of text that need parsers: changes of files and Markdown. Invariant: loaded when there is something to show,
 * so that the program starts without their packages.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';
import { textOf } from '../../content/content.ts';
import { printableLine } from '../../printable.ts';
import { FOREIGN, ownLine, type TextLine } from '../interactive/textRows.ts';
import { fileChange } from '../questions/callPreview.ts';
import type { Span } from '../screen.ts';
import { changeCounts, changeLines, foldedLines, newFileLines } from './changeLines.ts';
import { MarkdownStream } from './markdownStream.ts';

const formats = { fileChange, changeCounts, changeLines, foldedLines, newFileLines, changedFiles, MarkdownStream };
export default formats;
export type TextFormats = typeof formats;

/** The changes of files in a log: diffs, and new files. Failed calls changed nothing. */
function changedFiles(entries: readonly LogEntry[]): TextLine[] {
  const calls = new Map<string, { name: string; args: Json }>();
  return entries.flatMap((entry) => {
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') calls.set(entry.item.callId, entry.item);
    // A person may have changed the arguments.
    if (entry.type === 'tool-started' && entry.args !== undefined) {
      const call = calls.get(entry.callId);
      if (call) calls.set(entry.callId, { name: call.name, args: entry.args });
    }
    if (entry.type !== 'tool-result' || entry.outcome !== 'succeeded') return [];
    const call = calls.get(entry.callId);
    return call ? changeOf(call.name, call.args, textOf(entry.content)) : [];
  });
}

function changeOf(name: string, args: Json, result: string): TextLine[] {
  const change = fileChange(name, args);
  if (!change) return [];
  const mark: Span = ['plain', FOREIGN];
  const heading = (about: string): TextLine =>
    ownLine(['bold', printableLine(change.file_path)], ['dim', `  ${about}`]);
  const counts = changeCounts(result);
  if (counts) return [heading(`+${counts.added} −${counts.removed}`), ...changeLines(result, mark)];
  if (!('content' in change) || !result.startsWith('Created ')) return [];
  return [heading('new'), ...newFileLines(change.content, mark)];
}
