/**
 * The tools of the agent that change files, with a record of each file's earlier state. Invariant: the record does not change the
 * behaviour of a tool. The records of one file follow one another, as its changes do. A file that cannot be recorded is changed all the
 * same, and undo reports that it was not kept.
 */
import { KnownFiles } from '../../tools/coding/knownFiles.ts';
import { grantedPlace } from '../../tools/coding/workspace.ts';
import { defineTool, definitionOf, type Tool, type ToolContext, type ToolDefinition } from '../../tools/tool.ts';
import { isObject } from '../../validation.ts';
import { changeKey, type FileHistory } from './fileHistory.ts';

/** Records the changes of every tool of the write group that names one file with `file_path`. */
export function recordedTools(tools: readonly Tool[], history: FileHistory): Tool[] {
  const turns = new KnownFiles();
  return tools.map((tool) => {
    const definition = definitionOf(tool);
    return definition?.group === 'write-group' ? recorded(definition, history, turns) : tool;
  });
}

function recorded(definition: ToolDefinition, history: FileHistory, turns: KnownFiles): Tool {
  return defineTool({
    ...definition,
    async execute(args, context) {
      const path = isObject(args) ? args.file_path : undefined;
      const place = typeof path === 'string' ? await grantedPlace(context, path) : undefined;
      // The tool itself reports an invalid path.
      if (typeof path !== 'string' || place?.kind !== 'place') return definition.execute(args, context);
      return turns.inTurn(place.path, async () => {
        const isKept = await keepBefore(path, context, history);
        try {
          return await definition.execute(args, context);
        } finally {
          if (isKept) await recordAfter(path, context, history);
        }
      });
    },
  });
}

/** False if nothing could be recorded, on a full disk for example. An earlier call of the round may have made the file. */
async function keepBefore(path: string, context: ToolContext, history: FileHistory): Promise<boolean> {
  try {
    const place = await grantedPlace(context, path);
    if (place.kind !== 'place') return false;
    await history.before(context.origin.messageId, changeKey(context), place);
    return true;
  } catch {
    return false;
  }
}

async function recordAfter(path: string, context: ToolContext, history: FileHistory): Promise<void> {
  const place = await grantedPlace(context, path);
  if (place.kind !== 'place') return;
  await history.after(context.origin.messageId, changeKey(context), place).catch(() => undefined);
}
