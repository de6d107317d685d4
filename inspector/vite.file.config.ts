/**
 * Builds the page as one file that needs no server: `dist/inspect/inspector.html`. Invariant: the file is complete and
 * requests nothing. Its policy allows its own script by its hash, and no connection.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { deflateRawSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

const WORKER = 'elkjs/lib/elk-worker.min.js';

/** Compresses the layout worker, which is most of the page and runs only to lay out a chart again. */
function packedWorker(): Plugin {
  return {
    name: 'packed-worker',
    enforce: 'pre',
    resolveId: (id) => (id === `${WORKER}?url` ? '\0packed-worker' : undefined),
    load(id) {
      if (id !== '\0packed-worker') return undefined;
      const packed = deflateRawSync(readFileSync(createRequire(import.meta.url).resolve(WORKER)), { level: 9 });
      return [
        `const packed = Uint8Array.from(atob('${packed.toString('base64')}'), (letter) => letter.charCodeAt(0));`,
        `const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));`,
        `const text = await new Response(stream).arrayBuffer();`,
        `export default URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));`,
      ].join('\n');
    },
  };
}

const policyOf = (script: string): string =>
  [
    "default-src 'none'",
    `script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`,
    "style-src 'unsafe-inline'",
    'font-src data:',
    'img-src data: blob:',
    'worker-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');

/** Replaces the references to script and style with their contents. */
function oneFile(): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle: {
      // Runs after vite's own changes of the script.
      order: 'post',
      handler(_, bundle) {
        const page = bundle['index.html'];
        const files = Object.values(bundle);
        const script = files.flatMap((file) => (file.type === 'chunk' ? [file.code] : []));
        const style = files.flatMap((file) =>
          file.type === 'asset' && file.fileName.endsWith('.css') ? [file.source] : [],
        );
        if (page?.type !== 'asset' || script.length !== 1 || style.length !== 1)
          throw new Error(`expected one page, one script and one style, got ${Object.keys(bundle).join(', ')}`);
        const code = (script[0] ?? '').replaceAll('</script', '<\\/script');
        const notice = readFileSync(new URL('public/NOTICE.txt', import.meta.url), 'utf8').replaceAll('--', '- -');
        const whole = String(page.source)
          .replace('<head>', () => `<head>\n<!--\n${notice}-->`)
          .replace(/<script[^>]*src=[^>]*><\/script>/, () => '')
          .replace(/<link[^>]*rel="(stylesheet|icon)"[^>]*>/g, () => '')
          .replace(
            '<meta charset="utf-8">',
            () => `<meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="${policyOf(code)}">`,
          )
          .replace('</head>', () => `<style>${String(style[0])}</style>\n  </head>`)
          .replace('</body>', () => `<script type="module">${code}</script>\n  </body>`);
        for (const name of Object.keys(bundle)) delete bundle[name];
        this.emitFile({ type: 'asset', fileName: 'inspector.html', source: whole });
      },
    },
  };
}

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  logLevel: 'warn',
  publicDir: false,
  plugins: [packedWorker(), oneFile()],
  build: {
    outDir: '../dist/inspect',
    emptyOutDir: false,
    target: 'es2022',
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    cssCodeSplit: false,
    modulePreload: false,
    chunkSizeWarningLimit: 4000,
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: false } },
  },
});
