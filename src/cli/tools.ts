/**
 * The tools of `runchart run`. Rule: what only reads runs unasked; everything else waits until a person has said yes.
 */
import { codingTools } from '../tools/coding/index.ts';
import { defineTool, definitionOf, type Tool } from '../tools/define.ts';

export const askingTools = (): Tool[] => codingTools().map(asking);

function asking(tool: Tool): Tool {
  const definition = definitionOf(tool);
  if (definition === undefined || definition.readOnly === true) return tool;
  return defineTool({ ...definition, needsApproval: true });
}
