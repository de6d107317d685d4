/**
 * A tool call as an editor shows it: its kind, title, places, and the content of its result. Invariant: pure. Text of a model or a tool
 * is shortened everywhere, and titles show hidden characters as escapes.
 */
import { resolve } from 'node:path';
import type { PlanEntry, ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk';
import type { GroupName, Json, LogEntry, StoredPart } from '../../../machines/internal.ts';
import { textOf } from '../../content/content.ts';
import { isEncodedImage } from '../../content/imageFormat.ts';
import { printableLine, shortened } from '../../printable.ts';
import { isObject } from '../../validation.ts';

export interface ShownToolCall {
  readonly name: string;
  readonly args: Json;
  readonly group?: GroupName | undefined;
}

const TITLE_MAX = 200;
const TEXT_MAX = 20_000;

const KINDS: { readonly [tool: string]: ToolKind } = {
  Read: 'read',
  Ls: 'search',
  Glob: 'search',
  Grep: 'search',
  Bash: 'execute',
  BashOutput: 'execute',
  KillBash: 'execute',
  Write: 'edit',
  Edit: 'edit',
  MultiEdit: 'edit',
  WebFetch: 'fetch',
  TodoWrite: 'think',
  ExitPlanMode: 'switch_mode',
};
const KINDS_OF_GROUPS: { readonly [group in GroupName]: ToolKind } = {
  'read-group': 'read',
  'write-group': 'edit',
  'bash-group': 'execute',
  'other-group': 'other',
};

const kindOf = ({ name, group }: ShownToolCall): ToolKind =>
  (Object.hasOwn(KINDS, name) ? KINDS[name] : undefined) ?? KINDS_OF_GROUPS[group ?? 'other-group'];

const textArgument = (args: Json, key: string): string | undefined => {
  const value = isObject(args) && Object.hasOwn(args, key) ? args[key] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
};

function titleOf({ name, args }: ShownToolCall): string {
  const command = textArgument(args, 'command');
  if (command !== undefined) return inCode(shortened(printableLine(command), TITLE_MAX));
  const [pattern, path] = [textArgument(args, 'pattern'), textArgument(args, 'path')];
  const telling = ['file_path', 'url', 'query']
    .map((key) => textArgument(args, key))
    .find((text) => text !== undefined);
  const searched = pattern === undefined ? path : path === undefined ? pattern : `${pattern} in ${path}`;
  const about = telling ?? searched;
  return shortened(printableLine(about === undefined ? name : `${name} ${about}`), TITLE_MAX);
}

/** Returns the text as inline code of Markdown, also if it contains backticks. */
function inCode(text: string): string {
  const fence = '`'.repeat(longestRun(text) + 1);
  const pad = /^`|`$/.test(text) ? ' ' : '';
  return `${fence}${pad}${text}${pad}${fence}`;
}

const longestRun = (text: string): number => Math.max(0, ...(text.match(/`+/g) ?? []).map(({ length }) => length));

function fenced(text: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1));
  return `${fence}\n${text.replace(/\n$/, '')}\n${fence}`;
}

function locationsOf({ name, args }: ShownToolCall, cwd: string): ToolCallLocation[] {
  // The arguments of other tools may mean anything.
  if (!Object.hasOwn(KINDS, name)) return [];
  const path = textArgument(args, 'file_path') ?? textArgument(args, 'path');
  if (path === undefined) return [];
  const offset = isObject(args) ? args.offset : undefined;
  const isLine = typeof offset === 'number' && Number.isInteger(offset) && offset > 0;
  return [{ path: resolve(cwd, path), ...(isLine && { line: offset }) }];
}

/** A call as the editor shows it before it runs. */
export const shownCall = (call: ShownToolCall, cwd: string) => ({
  title: titleOf(call),
  name: call.name,
  kind: kindOf(call),
  locations: locationsOf(call, cwd),
  rawInput: call.args,
});

type ToolResultEntry = Extract<LogEntry, { type: 'tool-result' }>;

/** The content of a finished call: the changes of a file, else the text and the images of the result. */
export function resultContent(
  call: ShownToolCall | undefined,
  result: ToolResultEntry,
  cwd: string,
): ToolCallContent[] {
  const text = textOf(result.content);
  const changes = call && result.outcome === 'succeeded' ? changesIn(call, text, cwd) : [];
  if (changes.length > 0) return changes;
  const kind = call && kindOf(call);
  const isSource = kind === 'execute' || kind === 'read' || kind === 'search';
  const shown = shortened(text, TEXT_MAX);
  const texts = shown === '' ? [] : [textContent(isSource ? fenced(shown) : shown)];
  return [...texts, ...result.content.flatMap(imageContent)];
}

export const textContent = (text: string): ToolCallContent => ({ type: 'content', content: { type: 'text', text } });

function imageContent(part: StoredPart): ToolCallContent[] {
  if (part.type === 'text') return [];
  const { mediaType: mimeType, data } = part;
  if (part.type !== 'image' || !isEncodedImage(data)) return [textContent(`[${part.type} ${mimeType}]`)];
  return [{ type: 'content', content: { type: 'image', mimeType, data } }];
}

/** The changed places of a file, before and after the call, from the tool's own report. */
function changesIn(call: ShownToolCall, report: string, cwd: string): ToolCallContent[] {
  const [path, content] = [textArgument(call.args, 'file_path'), textArgument(call.args, 'content')];
  if (kindOf(call) !== 'edit' || path === undefined) return [];
  const place = resolve(cwd, path);
  if (content !== undefined && report.startsWith('Created ')) {
    return [{ type: 'diff', path: place, oldText: null, newText: content }];
  }
  return hunksIn(report).map(({ before, after }) => ({
    type: 'diff',
    path: place,
    oldText: before.join('\n'),
    newText: after.join('\n'),
  }));
}

/** The hunks of a unified diff, each as the lines before and after the change. */
function hunksIn(patch: string): { before: string[]; after: string[] }[] {
  const hunks: { before: string[]; after: string[] }[] = [];
  for (const line of patch.split('\n')) {
    if (/^@@ -\d+(,\d+)? \+\d+(,\d+)? @@/.test(line)) hunks.push({ before: [], after: [] });
    const hunk = hunks.at(-1);
    if (!hunk) continue;
    if (line.startsWith(' ') || line.startsWith('-')) hunk.before.push(line.slice(1));
    if (line.startsWith(' ') || line.startsWith('+')) hunk.after.push(line.slice(1));
  }
  return hunks;
}

const STATUSES = ['pending', 'in_progress', 'completed'] as const;
const PRIORITIES = ['high', 'medium', 'low'] as const;

/** The plan that a call of TodoWrite makes. Undefined for another call. */
export function planOf({ name, args }: ShownToolCall): PlanEntry[] | undefined {
  const todos = name === 'TodoWrite' && isObject(args) ? args.todos : undefined;
  if (!Array.isArray(todos)) return undefined;
  return todos.flatMap((todo): PlanEntry[] => {
    if (!isObject(todo) || typeof todo.content !== 'string') return [];
    const status = STATUSES.find((each) => each === todo.status) ?? 'pending';
    const priority = PRIORITIES.find((each) => each === todo.priority) ?? 'medium';
    return [{ content: shortened(printableLine(todo.content), TITLE_MAX), status, priority }];
  });
}
