/**
 * `/undo` and `/rewind`: restore files, rewind the conversation, or do both. Invariant: a file that somebody else has changed is not
 * touched
 * without a question. Changes that cannot be undone are named. Nothing is undone while a request is under way.
 */
import type { Conversation } from '../../conversation/conversation.ts';
import { printableLine } from '../../printable.ts';
import { firstLine } from '../../words/formats.ts';
import type { CodingAgent } from '../codingAgent.ts';
import { count } from '../costTally.ts';
import type { ConversationTerminal } from '../interactive/conversationTerminal.ts';
import type { Style } from '../screen.ts';
import type { FileHistory } from './fileHistory.ts';
import {
  type RestoredFile,
  removeMadeDirectories,
  restoreFile,
  type UndoableRequest,
  type UndoPlan,
  undoableRequests,
  undoPlan,
} from './undoPlan.ts';

const LISTED = 10;
const TEXT_MAX = 80;
const COMMANDS_SHOWN = 3;

type What = 'both' | 'files' | 'conversation';

export interface UndoPort {
  made(): Pick<CodingAgent, 'history'>;
  /** The text of the request is put back into its line. */
  readonly terminal: Pick<ConversationTerminal, 'fill'>;
  say(style: Style, text: string): void;
  /** Adds a note for the model to the next message. */
  note(text: string): void;
}

/** One command, in one conversation. */
interface Undoing extends UndoPort {
  readonly conversation: Conversation;
  readonly history: FileHistory;
}

export class UndoCommands {
  readonly #port: UndoPort;
  /** Reads a short line as the answer to a question or as a choice from a list. */
  #answers: ((text: string) => string | undefined) | undefined;
  /** The files that a person was asked about, as they were then. */
  #asked: string | undefined;

  constructor(port: UndoPort) {
    this.#port = port;
  }

  /** Returns the command that a line answers with. Any line ends the question. */
  take(line: string): string | undefined {
    const command = this.#answers?.(line.trim().toLowerCase());
    this.#answers = undefined;
    if (command === undefined) this.#asked = undefined;
    return command;
  }

  async undo(argument: string, conversation: Conversation): Promise<void> {
    const port = this.#undoing(conversation);
    const [what, ...rest] = wordsOf(argument);
    if (rest.length > 0) return usage(port);
    return this.#takeBack(1, what ?? 'both', undefined, port);
  }

  async rewind(argument: string, conversation: Conversation): Promise<void> {
    const port = this.#undoing(conversation);
    const words = wordsOf(argument);
    const [steps, what = 'both', answer, ...rest] = words;
    if (steps === undefined) return this.#list(port);
    if (!/^\d{1,3}$/.test(steps) || rest.length > 0) return usage(port);
    return this.#takeBack(Number(steps), what, answer, port);
  }

  #undoing(conversation: Conversation): Undoing {
    return { ...this.#port, conversation, history: this.#port.made().history };
  }

  async #list({ conversation, history, say }: Undoing): Promise<void> {
    const requests = undoableRequests(conversation.log()).slice(0, LISTED);
    if (requests.length === 0) return say('plain', 'there is no request to take back');
    for (const [index, { messageId, text }] of requests.entries()) {
      const changes = (await history.changes(messageId)).filter(({ isUndone }) => !isUndone);
      const paths = new Set(changes.map(({ path }) => path));
      const files = paths.size === 0 ? '' : `  ${count(paths.size, 'file')} changed`;
      say('plain', `${index + 1}  ${printableLine(firstLine(text, TEXT_MAX))}${files}`);
    }
    say('dim', 'a number takes back that request and the later ones · /rewind 2 files · /rewind 2 conversation');
    this.#answers = (text) => (/^\d{1,2}$/.test(text) ? `/rewind ${text}` : undefined);
  }

  async #takeBack(steps: number, what: string, answer: string | undefined, port: Undoing): Promise<void> {
    const { conversation, history, say } = port;
    if (what !== 'both' && what !== 'files' && what !== 'conversation') return usage(port);
    if (conversation.status === 'active' || conversation.status === 'cancelling') {
      return say('yellow', 'a request is under way: Escape stops it');
    }
    const request = undoableRequests(conversation.log())[steps - 1];
    if (!request)
      return say('plain', steps === 1 ? 'there is no request to take back' : `there is no request ${steps}`);
    if (what !== 'conversation') {
      const plan = await undoPlan(conversation.log(), request, history, conversation.cwd);
      if (this.#mustAsk(plan, steps, what, answer, port)) return;
      const names = await takeBackFiles(plan, answer === 'all', port);
      if (what === 'files') port.note(noteOf(names));
    }
    if (what !== 'files') await takeBackConversation(request, port);
  }

  /** True if the person is asked first. An answer applies only to the files of the question, in their state at that time. */
  #mustAsk(plan: UndoPlan, steps: number, what: What, answer: string | undefined, { say }: UndoPort): boolean {
    const key = JSON.stringify(plan.changedSince.map(({ path, now }) => [path, now]));
    const isAnswered = (answer === 'all' || answer === 'others') && this.#asked === key;
    this.#asked = undefined;
    if (plan.changedSince.length === 0 || isAnswered) return false;
    for (const file of plan.changedSince) say('yellow', `┃ ${printableLine(file.name)} ${whyAsked(file)}`);
    say(
      'yellow',
      '┃ take back these files too? [y]es (a copy is kept), [n]o (the other files only); anything else: nothing',
    );
    this.#asked = key;
    this.#answers = (text) => {
      if (text === 'y' || text === 'yes') return `/rewind ${steps} ${what} all`;
      return text === 'n' || text === 'no' ? `/rewind ${steps} ${what} others` : undefined;
    };
    return true;
  }
}

const whyAsked = ({ now, isMixed }: UndoPlan['changedSince'][number]): string => {
  if (isMixed) return 'was also changed by somebody else, or by a command, between changes of the agent';
  return `${now.kind === 'missing' ? 'was removed' : 'has changed'} since the agent wrote it`;
};

const wordsOf = (argument: string): string[] => argument.split(/\s+/).filter((word) => word !== '');

const usage = ({ say }: UndoPort): void =>
  say(
    'yellow',
    '/undo takes back the last request, /undo files or /undo conversation a part of it; /rewind lists requests',
  );

/** Returns the names of the restored files. Only they, and files that are as before, count as restored. */
async function takeBackFiles(
  plan: UndoPlan,
  isAll: boolean,
  { history, conversation, say }: Undoing,
): Promise<string[]> {
  const files = isAll ? [...plan.unchanged, ...plan.changedSince] : plan.unchanged;
  const restoredFiles: UndoPlan['unchanged'][number][] = [];
  const done = new Set(plan.asBefore);
  for (const file of files) {
    const restored = await restoreFile(file, history, conversation.cwd).catch(
      (error: unknown): RestoredFile => ({ name: file.name, kind: 'failed', why: String(error) }),
    );
    const isOwn = plan.changedSince.includes(file);
    say(restored.kind === 'failed' ? 'red' : 'plain', restoredText(restored, isOwn));
    if (restored.kind === 'failed') continue;
    restoredFiles.push(file);
    done.add(file.path);
  }
  await removeMadeDirectories(restoredFiles);
  if (!isAll) for (const { name } of plan.changedSince) say('dim', `· left as it is: ${printableLine(name)}`);
  for (const { name, why } of plan.lost)
    say('yellow', `! not taken back: ${printableLine(name)}, ${printableLine(why)}`);
  if (files.length === 0 && plan.lost.length === 0) say('plain', 'no file of it has to be taken back');
  if (plan.commands.length > 0) sayCommands(plan.commands, say);
  for (const [messageId, changes] of plan.changes) {
    const ofThem = changes.filter(({ path, isUndone }) => !isUndone && done.has(path));
    await history.markUndone(messageId, ofThem);
  }
  return restoredFiles.map(({ name }) => name);
}

function restoredText(restored: RestoredFile, isOwn: boolean): string {
  const name = printableLine(restored.name);
  if (restored.kind === 'failed') return `! not taken back: ${name}, ${printableLine(restored.why)}`;
  const copy = isOwn && restored.copy !== undefined ? `; your version is kept in ${printableLine(restored.copy)}` : '';
  return `${restored.kind === 'removed' ? `removed ${name}, which was new` : `restored ${name}`}${copy}`;
}

function sayCommands(commands: readonly string[], say: UndoPort['say']): void {
  const shown = commands.slice(0, COMMANDS_SHOWN).map((command) => printableLine(firstLine(command, TEXT_MAX)));
  const more = commands.length - shown.length;
  const rest = more > 0 ? ` and ${count(more, 'other')}` : '';
  say('yellow', `! what commands changed is not known and stays: ${shown.join(' · ')}${rest}`);
}

const noteOf = (names: readonly string[]): string =>
  `[I took back your changes of files, as far as possible: ${names.length === 0 ? 'none' : names.join(', ')}. Read them again.]`;

async function takeBackConversation(request: UndoableRequest, { conversation, say, terminal }: Undoing): Promise<void> {
  await conversation.rewind(request.messageId);
  say('plain', 'the conversation continues before that request; its text is in the line');
  terminal.fill(request.text);
}
