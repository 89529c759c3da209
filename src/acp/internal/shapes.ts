/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const acpAgentMake =
  "name:s;description?:s;command:[s];cwd?:s;env?:<s~effect/Redacted~>;isolation?:'none'o;mode?:s;prices?:{long?:[{input:n;output:n;cacheRead?:n;cacheWrite?:n;above:n}];input:n;output:n;cacheRead?:n;cacheWrite?:n};silence?:d"

export const acpServerLayer =
  "agents:<~effect-deepagents/Agent~>;mode?:'ask''auto-edit''plan''yolo';machine?:o;name?:s;version?:s;maxMessageBytes?:n"

export const acpServerServe =
  "open:f;makeId?:~effect/Effect~;store?:~effect/Effect~;login?:[{id:s;name:s;args:[s]}];name?:s;version?:s;maxMessageBytes?:n"
