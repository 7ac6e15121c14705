//! Words of a command line, as a person pastes them.

/// The text as one word of a POSIX shell.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn a_command_can_be_pasted_safely() {
        assert_eq!(shell_word("Qwen/Qwen2.5-7B"), "Qwen/Qwen2.5-7B");
        assert_eq!(shell_word("a b; rm -rf 'x'"), r"'a b; rm -rf '\''x'\'''");
        assert_eq!(shell_word(""), "''");
    }
}
