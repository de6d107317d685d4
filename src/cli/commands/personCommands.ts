/**
 * Commands that a person runs with `!`, and the content of messages. Invariant: one command at a time. The next message
 * includes the output of each, once. A message that was not delivered does not count.
 */
import type { StoredPart } from '../../../machines/internal.ts';
import type { Content } from '../../content/content.ts';
import { printableLine } from '../../printable.ts';
import type { CodingAgent } from '../codingAgent.ts';
import { outputLines, typedText } from '../interactive/conversationLines.ts';
import type { ConversationTerminal } from '../interactive/conversationTerminal.ts';
import { ownLine } from '../interactive/textRows.ts';
import type { Style } from '../screen.ts';

export class PersonCommands {
  readonly #port: { made(): CodingAgent; say(style: Style, text: string): void; terminal: ConversationTerminal };
  readonly #notes: string[] = [];
  /** The notes of messages, which may still be withdrawn. */
  readonly #sentNotes = new Set<string>();
  #running: AbortController | undefined;

  constructor(port: { made(): CodingAgent; say(style: Style, text: string): void; terminal: ConversationTerminal }) {
    this.#port = port;
  }

  /** Adds a text for the model to the next message. */
  note(text: string): void {
    this.#notes.push(text);
  }

  /** Returns a text together with the text of its command, its attached files and the outputs of earlier commands. */
  async content(text: string): Promise<Content> {
    if (this.#notes.length === 0 && !text.includes('@') && !text.startsWith('/')) return text;
    const { meaningOf, messageContent } = await import('./messageContent.ts');
    const { cwd, equipment } = this.#port.made();
    const notes = this.#notes.splice(0);
    for (const note of notes) this.#sentNotes.add(note);
    return messageContent(text, notes, cwd, meaningOf(text, equipment.commands, cwd));
  }

  /** Keeps the notes of messages that were not delivered for the next one. Returns the text that the person typed. */
  withdrawn(contents: readonly (readonly StoredPart[])[]): string[] {
    for (const part of contents.flat()) {
      if (part.type === 'text' && this.#sentNotes.delete(part.text)) this.#notes.push(part.text);
    }
    return contents.map(typedText);
  }

  /** Ends the running command. False if none runs. */
  endCommand(): boolean {
    this.#running?.abort();
    return this.#running !== undefined;
  }

  async run(command: string, cwd: string): Promise<void> {
    const { terminal, say } = this.#port;
    if (this.#running) return say('yellow', 'a command runs already: Ctrl-C ends it');
    const running = new AbortController();
    this.#running = running;
    try {
      const { commandNote, personCommand } = await import('./messageContent.ts');
      const result = await personCommand(command, cwd, running.signal);
      const heading = ownLine(['cyan', '! '], ['bold', printableLine(command)], ['dim', `  ${result.end}`]);
      terminal.commit([heading, ...outputLines(result.output, terminal.rows)]);
      this.#notes.push(commandNote(command, result));
    } finally {
      this.#running = undefined;
    }
  }
}
