/**
 * Draws a chart as a mermaid state diagram. Invariant: the built machine is the source, so the drawing has every
 * state and transition, also eventless ones, with their actions. A transition without a target is a loop, and the final
 * state `Done` is the end. Mermaid moves a state into the block that names it. So each state is named first in its
 * parent's block, and elsewhere only in the outermost one.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';
import { actionNames } from './actionNames.ts';
import { listsOf, nodesOf } from './chartNodes.ts';

type Node = AnyStateMachine['root'];
const END = '[*]';

/** Only `Done` of the chart itself. A nested one is a normal state, because an arrow from outside can name it. */
const isEnd = (node: Node): boolean => node.type === 'final' && node.key === 'Done' && node.path.length === 1;

/** Returns the state whose block contains an arrow: the parent of both ends, else the outermost. */
function homeOf(source: Node, target: Node): Node {
  const { root } = source.machine;
  return source.parent === target.parent ? (source.parent ?? root) : root;
}

function guardOf({ guard }: AnyTransitionDefinition): string {
  if (guard === undefined) return '';
  if (typeof guard === 'string') return `[${guard}]`;
  return `[${'type' in guard && typeof guard.type === 'string' ? guard.type : 'inline'}]`;
}

/** Returns actions as UML writes them: a slash before their names. */
function actionsOf(actions: readonly unknown[]): string {
  const names = actionNames(actions);
  return names.length > 0 ? `/ ${names.join(', ')}` : '';
}

/** Returns the label of an arrow: the event, the guard and the actions. */
const labelOf = (event: string, taken: AnyTransitionDefinition): string =>
  [event, guardOf(taken), actionsOf(taken.actions)].filter((part) => part !== '').join(' ');

/** Returns the acts of a state itself, one line each: its actions on entry and exit, and the actors it runs. */
function activitiesOf({ entry, exit, invoke, config }: Node): string[] {
  // For each delay XState adds a last action: one starts its timer and one ends it.
  const delays = Object.keys(config.after ?? {}).length;
  const own = (actions: readonly unknown[]): string => actionsOf(actions.slice(0, actions.length - delays));
  const running = invoke.map(({ src, id }) => (typeof src === 'string' ? src : id)).join(', ');
  const activities = { entry: own(entry), do: running && `/ ${running}`, exit: own(exit) };
  return Object.entries(activities).flatMap(([when, actions]) => (actions ? [`${when} ${actions}`] : []));
}

/** Returns the name of each state: its key if it is unique, else with its parents. */
function namesOf(root: Node): (node: Node) => string {
  const nodes = [...nodesOf(root)];
  const counts = new Map<string, number>();
  for (const { key } of nodes) counts.set(key, (counts.get(key) ?? 0) + 1);
  return (node) => {
    if (isEnd(node)) return END;
    const own = node.parent && (counts.get(node.key) ?? 0) > 1 ? [...node.path].join('_') : node.key;
    return own.replace(/[^\w]/g, '_');
  };
}

/** Draws a chart as a Mermaid state diagram. The result is its text. */
export function drawChart(machine: AnyStateMachine): string {
  const { root } = machine;
  const nameOf = namesOf(root);
  const arrows = new Map<Node, string[]>();
  const draw = (home: Node, from: Node, to: Node, label: string): void => {
    const line = `${nameOf(from)} --> ${nameOf(to)}${label && `: ${label}`}`;
    arrows.set(home, [...(arrows.get(home) ?? []), line]);
  };
  for (const node of nodesOf(root)) {
    for (const [event, list] of listsOf(node)) {
      for (const taken of list) {
        for (const target of (taken.target as readonly Node[] | undefined) ?? [node]) {
          draw(homeOf(node, target), node, target, labelOf(event, taken));
        }
      }
    }
  }
  const lines = ['stateDiagram-v2'];
  const write = (depth: number, line: string): void => void lines.push(`${'    '.repeat(depth)}${line}`);
  const body = (node: Node, depth: number): void => {
    const first = (node.initial as { target?: readonly Node[] } | undefined)?.target?.[0];
    if (first) write(depth, `${END} --> ${nameOf(first)}`);
    for (const child of Object.values(node.states) as Node[]) state(child, depth);
    if (node.parent || first) for (const line of arrows.get(node) ?? []) write(depth, line);
    for (const child of Object.values(node.states) as Node[]) {
      if (child.type === 'final' && !isEnd(child)) write(depth, `${nameOf(child)} --> ${END}`);
    }
  };
  const state = (node: Node, depth: number): void => {
    if (isEnd(node)) return;
    const leaf = Object.keys(node.states).length === 0;
    const activities = activitiesOf(node);
    // Mermaid shows lines below the name of a leaf only, so a composite state has them in its title.
    const title = leaf ? node.key : [node.key, ...activities].join('<br/>');
    const isTitled = title !== nameOf(node) || (leaf && activities.length > 0);
    if (isTitled) write(depth, `state "${title}" as ${nameOf(node)}`);
    else if (leaf) write(depth, nameOf(node));
    if (leaf) {
      for (const activity of activities) write(depth, `${nameOf(node)}: ${activity}`);
      return;
    }
    write(depth, `state ${nameOf(node)} {`);
    body(node, depth + 1);
    write(depth, '}');
  };
  body(root, 1);
  return `${lines.join('\n')}\n`;
}
