/**
 * Commands that a person runs with `!`, and the content of messages. Invariant: one command at a time. The next message
 * includes the output of each, once.
 */
import type { Content } from '../../content/content.ts';
import { printableLine } from '../../printable.ts';
import type { CodingAgent } from '../codingAgent.ts';
import { outputLines } from '../interactive/conversationLines.ts';
import type { ConversationTerminal } from '../interactive/conversationTerminal.ts';
import { ownLine } from '../interactive/textRows.ts';
import type { Style } from '../screen.ts';

export class PersonCommands {
  readonly #port: { made(): CodingAgent; say(style: Style, text: string): void; terminal: ConversationTerminal };
  readonly #notes: string[] = [];
  #running: AbortController | undefined;

  constructor(port: { made(): CodingAgent; say(style: Style, text: string): void; terminal: ConversationTerminal }) {
    this.#port = port;
  }

  /** Adds a text for the model to the next message. */
  note(text: string): void {
    this.#notes.push(text);
  }

  /** Returns a text with what its command stands for, its attached files and the outputs of the commands before it. */
  async content(text: string): Promise<Content> {
    if (this.#notes.length === 0 && !text.includes('@') && !text.startsWith('/')) return text;
    const { meaningOf, messageContent } = await import('./messageContent.ts');
    const { cwd, equipment } = this.#port.made();
    return messageContent(text, this.#notes.splice(0), cwd, meaningOf(text, equipment.commands, cwd));
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
