// A pseudo-terminal: what the host opens as its serial port.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>

namespace board {

class Pty {
public:
    Pty() {
        master_ = posix_openpt(O_RDWR | O_NOCTTY);
        if (master_ < 0 || grantpt(master_) || unlockpt(master_)) throw std::runtime_error("no pseudo-terminal");
        path_ = ptsname(master_);
        // Kept open, so that a host that leaves does not end the terminal.
        slave_ = open(path_.c_str(), O_RDWR | O_NOCTTY);
        termios raw;
        if (slave_ < 0 || tcgetattr(slave_, &raw)) throw std::runtime_error("cannot open " + path_);
        cfmakeraw(&raw);
        tcsetattr(slave_, TCSANOW, &raw);
        fcntl(master_, F_SETFL, O_NONBLOCK);
    }

    ~Pty() { close(slave_), close(master_); }

    const std::string& path() const { return path_; }

    // Bytes that the host has written, up to a few hundred; none if there are none now.
    template <class Take>
    void read(Take take) {
        uint8_t buffer[256];
        const ssize_t count = ::read(master_, buffer, sizeof buffer);
        for (ssize_t i = 0; i < count; ++i) take(buffer[i]);
    }

    // Gives the host what it has room for.
    void write(std::deque<uint8_t>& queue) {
        while (!queue.empty()) {
            uint8_t buffer[256];
            size_t count = 0;
            while (count < sizeof buffer && count < queue.size()) buffer[count] = queue[count], ++count;
            const ssize_t done = ::write(master_, buffer, count);
            if (done <= 0) return;
            queue.erase(queue.begin(), queue.begin() + done);
        }
    }

    // Sleeps until the host writes, or for some milliseconds.
    void wait(int milliseconds) {
        pollfd ready{master_, POLLIN, 0};
        poll(&ready, 1, milliseconds);
    }

private:
    int master_ = -1, slave_ = -1;
    std::string path_;
};

}  // namespace board
