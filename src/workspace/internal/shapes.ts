/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const currentDatetimeMake = "zone?:s"

export const desktopLayerLinux = "notes:s;home:s;display?:s"

export const gitMake = "repository?:s"

export const lspDiagnosticsLayer = "root:s;command:[s];languages:<s>;cwd?:s;env?:<s>;settings?:<o>"

export const runCodeMake = "languages?:['javascript''python''shell''typescript'];timeout?:d"

export const treeMake = "entries?:n;closed?:[s]"

export const worktreesMerge = "repository?:s;author?:{name:s;email:s};base?:s"

export const worktreesTools = "repository?:s;author?:{name:s;email:s};base?:s;agent:~effect-deepagents/Agent~"
