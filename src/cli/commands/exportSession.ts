/**
 * Writes a session as a file for people or programs: Markdown, or the entries of its log as JSON. Invariant: an existing
 * file is never replaced.
 */
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { LogEntry } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { printable, sourceText } from '../../printable.ts';
import { joinedText } from '../renderLog.ts';

/** `fileName`: its extension selects the form, `.json` or Markdown. Returns the path. Rejects if the file exists. */
export async function exportSession(conversation: Conversation, fileName: string): Promise<string> {
  const { id, cwd } = conversation;
  const path = resolve(cwd, fileName === '' ? `${id.replaceAll(/[^\w.-]/g, '_')}.md` : fileName);
  const entries = conversation.log();
  const isJson = path.endsWith('.json');
  const text = isJson ? sourceText(`${JSON.stringify(entries, null, 2)}\n`) : printable(markdownOf(entries, id));
  await writeFile(path, text, { flag: 'wx' });
  return path;
}

export function markdownOf(entries: readonly LogEntry[], id: string): string {
  const names = new Map<string, string>();
  const parts = entries.flatMap((entry): string[] => {
    if (entry.type === 'user-message')
      return [`## ${entry.kind === 'steer' ? 'You (steering)' : 'You'}`, joinedText(entry.content, '\n\n')];
    if (entry.type === 'tool-result') {
      const name = names.get(entry.callId) ?? entry.callId;
      return [`Result of ${name}: ${entry.outcome}`, fenced(joinedText(entry.content), '')];
    }
    if (entry.type === 'run-stop' && entry.reason !== 'completed')
      return [`*${[entry.reason, entry.cause].filter(Boolean).join(': ')}*`];
    if (entry.type !== 'agent-output') return [];
    const { item } = entry;
    if (item.type === 'assistant') return ['## Agent', item.text];
    if (item.type !== 'tool-call') return [item.text.replaceAll(/^/gm, '> ')];
    names.set(item.callId, item.name);
    const { args, argsText } = item;
    const command = typeof args === 'object' && args !== null && !Array.isArray(args) ? args.command : undefined;
    if (argsText !== undefined) return [`**${item.name}**`, fenced(argsText, '')];
    const call = typeof command === 'string' ? fenced(command, 'sh') : fenced(JSON.stringify(args, null, 2), 'json');
    return [`**${item.name}**`, call];
  });
  return `# Session ${id}\n\n${parts.join('\n\n')}\n`;
}

/** A fence that the text does not contain. */
function fenced(text: string, language: string): string {
  const longest = (text.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 2);
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
