/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const acpServerLayer =
  "agents:<~effect-deepagents/Agent~>;mode?:'ask''auto-edit''plan''yolo';machine?:o;name?:s;version?:s;maxMessageBytes?:n"

export const acpServerServe =
  "open:f;makeId?:~effect/Effect~;store?:~effect/Effect~;login?:[{id:s;name:s;args:[s]}];name?:s;version?:s;maxMessageBytes?:n"
