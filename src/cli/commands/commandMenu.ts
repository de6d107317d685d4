/**
 * The menu below a `/`: the commands whose names begin with the typed text, and the chosen one. Invariant: the only state is the choice,
 * and a change of the text resets it.
 */
import { NAME_WIDTH } from '../interactive/slashCommands.ts';
import { ownLine, type TextLine } from '../interactive/textRows.ts';
import type { Span } from '../screen.ts';

const SHOWN = 8;
const MENU = /^\/[\w:-]*$/;

/** The usage of a command, and its effect. */
export type CommandUsage = readonly [usage: string, about: string];

export class CommandMenu {
  readonly #commands: () => readonly CommandUsage[];
  #text = '';
  #chosen = 0;

  constructor(commands: () => readonly CommandUsage[]) {
    this.#commands = commands;
  }

  /** The usages that fit the text. Empty if no menu is open. */
  #matches(text: string): readonly CommandUsage[] {
    if (text !== this.#text) [this.#text, this.#chosen] = [text, 0];
    return MENU.test(text) ? this.#commands().filter(([usage]) => usage.startsWith(text)) : [];
  }

  lines(text: string): TextLine[] {
    const matches = this.#matches(text);
    const first = Math.max(0, Math.min(this.#chosen - SHOWN + 1, matches.length - SHOWN));
    return matches.slice(first, first + SHOWN).map(([usage, about], index) => {
      const isChosen = first + index === this.#chosen;
      const name: Span = [isChosen ? 'bold' : 'cyan', `${isChosen ? '›' : ' '} ${usage.padEnd(NAME_WIDTH)}`];
      return { ...ownLine(name, ['dim', ` ${about}`]), margin: ' '.repeat(NAME_WIDTH + 3) };
    });
  }

  /** Chooses the next or an earlier command. False if no menu is open. */
  move(text: string, step: number): boolean {
    const { length } = this.#matches(text);
    if (length < 2) return false;
    this.#chosen = (this.#chosen + step + length) % length;
    return true;
  }

  /** The chosen command, else the text. */
  completed(text: string): string {
    const [usage] = this.#matches(text)[this.#chosen] ?? [];
    return usage === undefined ? text : `${usage.split(' ', 1)[0]} `;
  }
}
