/**
 * Draws a chart as a mermaid state diagram. Rule: read off the built machine, so it has every state and every
 * transition, those that are taken at once among them; a transition that leads nowhere is a loop; the final state
 * `Done` is drawn as the end. Mermaid moves a state into the block that names it, so each state is named in its
 * parent's block first, and by no other one but the outermost.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';
import { listsOf, nodesOf } from './transitionCoverage.ts';

type Node = AnyStateMachine['root'];
const END = '[*]';

/** `Done` of the chart itself: one within a state is a state of its own, which an arrow from outside can name. */
const isEnd = (node: Node): boolean => node.type === 'final' && node.key === 'Done' && node.path.length === 1;

/** Whose block an arrow stands in: that of the parent both ends have, else the outermost. */
function homeOf(source: Node, target: Node): Node {
  const { root } = source.machine;
  return source.parent === target.parent ? (source.parent ?? root) : root;
}

function guardOf({ guard }: AnyTransitionDefinition): string {
  if (guard === undefined) return '';
  if (typeof guard === 'string') return `[${guard}]`;
  return `[${'type' in guard && typeof guard.type === 'string' ? guard.type : 'inline'}]`;
}

/** What stands at an arrow: the event and the guard. */
const labelOf = (event: string, taken: AnyTransitionDefinition): string =>
  [event, guardOf(taken)].filter((part) => part !== '').join(' ');

/** Names of states in the drawing: their own where no other state has it, else with their parent's. */
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
    if (node.key !== nameOf(node)) write(depth, `state "${node.key}" as ${nameOf(node)}`);
    else if (leaf) write(depth, nameOf(node));
    if (leaf) return;
    write(depth, `state ${nameOf(node)} {`);
    body(node, depth + 1);
    write(depth, '}');
  };
  body(root, 1);
  return `${lines.join('\n')}\n`;
}
