// Ways in which a command in the sandbox 'workspace' makes git, an editor or a shell of the user run a program later, outside.

/** One way: `$OWNED` is the file that the program outside would make. */
export interface GitAttempt {
  readonly name: string;
  /** Run outside, in a new repository with one commit, before the sandbox starts. */
  readonly before?: string;
  /** Run inside. */
  readonly script: string;
  /** Run outside afterwards. Defaults to common git commands. */
  readonly after?: string;
}

const EVIL = 'touch $OWNED; false';
const SETTINGS = `printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "${EVIL}"\\n\\thooksPath = ../hooks\\n'`;
const HOOK = `printf '#!/bin/sh\\ntouch %s\\n' $OWNED`;
const SUBMODULE = `git init -q ../lib && git -C ../lib commit -q --allow-empty -m lib &&
  git -c protocol.file.allow=always submodule --quiet add ../lib deep/lib && git commit -qm lib`;

export const GIT_ATTEMPTS: readonly GitAttempt[] = [
  { name: 'change the settings', script: `git config core.fsmonitor "${EVIL}"; ${SETTINGS} >> .git/config` },
  { name: 'write a hook', script: `mkdir -p .git/hooks; ${HOOK} > .git/hooks/post-checkout; chmod +x .git/hooks/*` },
  {
    name: 'point the repository to other settings (commondir)',
    script: `mkdir evil && cp -r .git/objects .git/refs evil/ && ${SETTINGS} > evil/config; echo ../evil > .git/commondir`,
  },
  {
    name: 'change the settings of a work tree',
    before: 'git sparse-checkout init',
    script: `${SETTINGS} >> .git/config.worktree`,
  },
  {
    name: 'create settings of a work tree',
    before: 'git config extensions.worktreeConfig true',
    script: `${SETTINGS} > .git/config.worktree`,
  },
  {
    name: 'change the settings of a submodule',
    before: SUBMODULE,
    script: `${SETTINGS} >> .git/modules/deep/lib/config`,
  },
  {
    name: 'point a submodule to another repository',
    before: SUBMODULE,
    script: `cp -r .git/modules/deep/lib evil; ${SETTINGS} > evil/config; echo "gitdir: ../../evil" > deep/lib/.git`,
  },
  {
    name: 'replace the folder above a submodule',
    before: SUBMODULE,
    script: `cp -r .git/modules/deep/lib evil; ${SETTINGS} > evil/config; mv deep old; mkdir -p deep/lib; echo "gitdir: ../../evil" > deep/lib/.git`,
  },
  {
    name: 'move .git away and make another',
    script: `cp -r .git copy; mv .git old; mv copy .git; ${SETTINGS} >> .git/config`,
  },
  {
    name: 'remove .git and make another',
    script: `cp -r .git copy; rm -rf .git; mv copy .git; ${SETTINGS} >> .git/config`,
  },
  {
    name: 'change a hook in the work tree (husky)',
    before: 'mkdir .husky && git config core.hooksPath .husky',
    script: `${HOOK} > .husky/post-checkout; chmod +x .husky/post-checkout; mv .husky old && cp -r old .husky`,
  },
  {
    name: 'change hooks in a folder of any name',
    before: 'mkdir -p tools/git && git config core.hooksPath tools/git',
    script: `${HOOK} > tools/git/post-checkout; chmod +x tools/git/*; mv tools old; mkdir -p tools/git; ${HOOK} > tools/git/post-checkout; chmod +x tools/git/*`,
  },
  {
    name: 'create the folder of hooks that the settings name',
    before: 'git config core.hooksPath hooks-to-come',
    script: `mkdir hooks-to-come; ${HOOK} > hooks-to-come/post-checkout; chmod +x hooks-to-come/*`,
  },
  {
    name: 'change settings that are included from the work tree',
    before: 'touch shared.conf && git config include.path ../shared.conf',
    script: `${SETTINGS} > shared.conf; mv shared.conf old; ${SETTINGS} > shared.conf`,
  },
  {
    name: 'create settings that are included if they exist',
    before: 'git config include.path ../local.conf',
    script: `${SETTINGS} > local.conf`,
  },
  {
    name: 'change the program of a filter',
    before: `printf 'cat\\n' > clean.sh && chmod +x clean.sh && git config filter.x.clean ./clean.sh && echo '* filter=x' > .gitattributes`,
    script: `printf '#!/bin/sh\\ntouch %s; cat\\n' $OWNED > clean.sh; rm clean.sh && printf '#!/bin/sh\\ntouch %s; cat\\n' $OWNED > clean.sh; chmod +x clean.sh; echo b >> a`,
  },
  {
    name: 'change the settings of another repository in the workspace',
    before: 'git init -q other && git -C other commit -q --allow-empty -m other',
    script: `${SETTINGS} >> other/.git/config; cp -r other copy; mv other old && mv copy other; ${SETTINGS} >> other/.git/config`,
    after: 'git -C other status; git -C other checkout -b b',
  },
  {
    name: 'write a hook of a bare repository in the workspace',
    before: 'git init -q --bare store',
    script: `${HOOK} > store/hooks/post-receive; chmod +x store/hooks/post-receive`,
    after: 'git push -q ./store HEAD:refs/heads/later',
  },
];

export const AFTER = 'git status; git add -A; git commit -qm later --allow-empty; git checkout -q -b later';
