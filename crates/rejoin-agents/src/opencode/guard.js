// In a turn that asks (`--permission ask`), shell commands are denied by the turn's rules; this plugin
// has them asked for instead. Without it they stay denied.
//
// OpenCode (1.18.33) asks about the commands that it finds in a line, and runs a line in which it
// finds none unasked: `> file` empties the file. So a line must begin with a command.
const KEYWORDS = new Set(
  ("case coproc declare do done elif else esac export fi for function if in local namespace readonly select then time " +
    "typeset unset unsetenv until while").split(" "),
)

export const RejoinGuard = async () => ({
  config: async (config) => {
    const told = JSON.parse(process.env.REJOIN_OPENCODE_GUARD ?? "{}")
    const agent = config.agent?.[told.agent]
    if (agent?.permission && told.bash) agent.permission.bash = told.bash
  },
  "tool.execute.before": async (input, output) => {
    if (input.tool !== "bash") return
    const word = /^\s*([A-Za-z_.\/~][A-Za-z0-9_.\/~+-]*)(?=$|[\s;&|<>])(?!\s*\()/.exec(String(output.args?.command ?? ""))
    if (word && !KEYWORDS.has(word[1])) return
    throw new Error(
      "The user has specified a rule which prevents you from using a shell command that does not begin with the name of a " +
        "program: begin it with one, for example `true; ...`.",
    )
  },
})
