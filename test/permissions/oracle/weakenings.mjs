/**
 * Rules of the judge, each removed in turn, with lines that only this rule stops. Two rules are missing: a line leaves
 * the working directory, and a line defines a function. `cd` and the commands of a function are judged separately.
 */
export const weakenings = [
  {
    id: 'links',
    edits: [['const rest = partsOf(path).reverse();', 'const rest = partsOf(join(path)).reverse();']],
    lines: ['cat link/../secret', 'cat link/../../secret'],
  },
  {
    id: 'computed words',
    edits: [['if (!word.isLiteral && !word.isGlob) return `\x24{word.source} is computed`;', '']],
    lines: ['cat "$(echo ../out/secret)"', 'cat "\x24{x:-../out/secret}"'],
  },
  {
    id: 'places outside',
    edits: [
      [
        "if (outside && !this.#rules.allow.some((rule) => this.#files.allowsPaths(rule, 'read', subjects)))",
        'if (outside && subjects.length === 0)',
      ],
    ],
    lines: ['cat ../out/secret', 'ls ..'],
  },
  {
    id: 'names of hidden files',
    edits: [
      [
        'return subjects.some((path) => subject.pattern.matches(path, this.#around, false));',
        'return subjects.length < 0;',
      ],
    ],
    lines: ['cat secrets/key', 'cat inner/key'],
  },
  {
    id: 'searches',
    edits: [
      ['const all = descends !== undefined && args.some(({ value }) => descends.test(value));', 'const all = false;'],
    ],
    lines: ['grep -rn KEY .'],
  },
  {
    id: 'options',
    edits: [
      [
        'else if (isOption && !((word.isLiteral || word.isGlob) && options.test(word.value)) && !takesAll) return undefined;',
        '',
      ],
    ],
    lines: ['wc --files0-from=list0', 'sort -o made/y README.md', 'file -f secrets/key'],
  },
  {
    id: 'a -- that is a value',
    edits: [["if (!takesAll && mayBeValue(checkedArgs, at, words === 'afterPattern')) return undefined;", '']],
    lines: ['grep -e -- -R -e KEY .', 'ls -I -- -LR .', 'find . -name -- -o -follow'],
  },
  {
    id: 'names in programs of awk',
    edits: [['const AWK_REFUSED = /system|getline|', 'const AWK_REFUSED = /\\bsystem\\b|\\bgetline\\b|']],
    lines: ['awk \'BEGIN { x = 1system("cat ../out/secret") }\''],
  },
  {
    id: 'expansions that become globs',
    edits: [['if (listed) return `\x24{listed.source} may match files outside`;', '']],
    lines: ["x='../out/*'; echo $x", "echo $(echo '../out/*')"],
  },
  {
    id: 'tests of the shell',
    edits: [['reads: isKnown && outside === undefined', 'reads: true']],
    lines: ['[[ -f ../out/secret ]]'],
  },
  {
    id: 'parts of a repository elsewhere',
    edits: [['if (part !== undefined) return `the repository has \x24{part}`;', '']],
    lines: ['git check-ignore -v KEY=canary-from-outside', 'git status'],
    repository: 'the link info/exclude in it',
  },
  {
    id: 'other repositories in the index',
    edits: [["return names === 'repositories' ? 'the repository has submodules' : undefined;", 'return undefined;']],
    lines: ['git status'],
    repository: 'another repository in its index',
  },
  {
    id: 'places of hooks',
    edits: [
      [
        "if (!places.every((place) => PLAIN_PATH.test(place))) return 'the repository has hooks at an unclear place';",
        '',
      ],
    ],
    lines: ['git status'],
    repository: 'hooks at h # x',
  },
  {
    id: 'files that are named by a hash',
    edits: [["const mayNameFile = subcommand === 'show' && !names.every(isCommit);", 'const mayNameFile = false;']],
    lines: ['git show --stat HEAD:./secrets/key', 'git show -s blob'],
    reference: 'blob',
  },
  {
    id: 'settings of git',
    edits: [
      [
        'const unlisted = settings.find(({ key }) => !HARMLESS.some((harmless) => harmless.test(key)));',
        "const unlisted = settings.find(({ key }) => key === '');",
      ],
    ],
    lines: ['git status'],
    repository: 'a file system monitor',
  },
  {
    id: 'programs that find runs',
    edits: [["if (command === 'find' || command === 'fd')", "if (command === 'fd')"]],
    lines: ["find secrets -name 'k*' -exec cat {} +", "find . -name 'k*' -exec cat {} +"],
  },
  {
    id: 'protected places',
    edits: [["if (guarded !== undefined) return findingWith('ask', `protected \x24{guarded}`);", '']],
    lines: ['tee .envrc', 'cp README.md .bashrc', 'tee .git/config'],
  },
  {
    id: 'redirections',
    edits: [["const reads = operator === '<';", "const reads = operator !== '';"]],
    lines: ['echo x > made/y', 'echo x > .envrc'],
  },
  {
    id: 'variables of a command',
    edits: [['if (!command.assigned.every(({ name }) => isHarmlessEnvironment(name))) return undefined;', '']],
    lines: ['GIT_EXTERNAL_DIFF=./run git diff', 'PATH=.:$PATH run'],
  },
  {
    id: 'globs outside',
    edits: [
      [
        'if (word.isGlob && !this.#files.globOf(word)?.staysInside) return `\x24{word.source} may match files outside`;',
        '',
      ],
    ],
    lines: ['cat lin*/secret', 'cat outs*.txt', 'cat ../o*/secret'],
  },
  {
    id: 'names that become options',
    edits: [['if (await mayBecomeOption(value, directory)) doubts.push(', "if (value === '') doubts.push("]],
    lines: ['sort *.md', 'sort *'],
    file: '-osorted.md',
  },
  {
    id: 'arithmetic',
    edits: [["if (!DIGITS.test(node.value)) this.doubt('arithmetic uses a variable');", '']],
    lines: ["x='a[$(cat ../out/secret >&2)]'; echo $((x))"],
  },
  {
    id: 'unusual parameters',
    edits: [["if (prefix === '!' || runs || sets) this.doubt(", "if (prefix === '?') this.doubt("]],
    lines: ['x=\'$(cat ../out/secret)\'; echo "\x24{x@P}"'],
  },
  {
    id: 'programs that work outside',
    edits: [['return this.#files.worksOutside(words);', 'return undefined;']],
    lines: ['make -C ../out'],
  },
  {
    id: 'hidden directories as a whole',
    edits: [
      [
        'const whole = reading ? undefined : (this.#files.ruleHidingAllBelow(words.slice(1)) ?? this.#places.copied.get(command));',
        'const whole = undefined as Rule | undefined;',
      ],
    ],
    lines: ['tar c secrets', 'cp -r secrets made/z; cat made/z/key'],
  },
];
